//! Functions whose parameters are the fields of their input: the arguments of a tool, or the
//! channels of a node.

use std::mem;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Ident, Pat, PatType, Signature, Type};

/// The attributes that set the levels of lints.
const LINT_LEVELS: [&str; 5] = ["allow", "deny", "expect", "forbid", "warn"];

/// The types of a function whose parameters are the fields of its input.
pub(crate) struct Types {
    /// Path of the context.
    pub(crate) context: TokenStream,
    /// Name of the output, for messages.
    pub(crate) output: &'static str,
    /// Name of a field with its article, for messages.
    pub(crate) field: &'static str,
}

/// The parameters of a function that are the fields of its input.
pub(crate) struct Fields {
    types: Types,
    /// True if the first parameter is the context. The fields are the other parameters.
    has_context: bool,
    /// The attributes of each field.
    attributes: Vec<Vec<Attribute>>,
}

impl Fields {
    /// Takes the attributes of each parameter that are for its field, such as documentation. The
    /// compiler rejects them at parameters. Levels of lints stay at the parameter. Returns `None`
    /// for a function that takes its input as one type.
    ///
    /// The parameters of a function without a context are fields. A context is a reference, and the
    /// parameters after it are fields only if `after_context` is true.
    pub(crate) fn take(
        types: Types,
        signature: &mut Signature,
        after_context: bool,
    ) -> Option<Self> {
        let has_context = match signature.inputs.first() {
            Some(FnArg::Typed(first)) => is_reference(&first.ty),
            Some(FnArg::Receiver(_)) => return None,
            None => false,
        };
        if has_context && !after_context {
            return None;
        }
        let fields = signature.inputs.iter_mut().skip(usize::from(has_context));
        let attributes = fields.map(take_attributes).collect();
        Some(Self { types, has_context, attributes })
    }

    /// Returns the signature of the function, for messages.
    pub(crate) fn form(&self) -> String {
        let context = if self.has_context { "&Context, " } else { "" };
        format!("fn({context}name: Type, ...) -> Result<{}, Failure>", self.types.output)
    }

    /// Returns a closure that takes the input as one type, and passes its fields to the function.
    /// The function is no method, which [`signature::check`](crate::signature::check) rejects.
    pub(crate) fn closure(&self, signature: &Signature) -> syn::Result<TokenStream> {
        let function = &signature.ident;
        let context_type = &self.types.context;
        // The spans keep the variables apart from a function with the same name.
        let context = Ident::new("context", Span::mixed_site());
        let arguments = Ident::new("arguments", Span::mixed_site());
        let (context_pattern, passed_context) = if self.has_context {
            (quote!(#context), Some(quote!(#context,)))
        } else {
            (quote!(_), None)
        };
        let (names, fields) = self.names_and_fields(signature)?;
        if names.is_empty() {
            return Ok(quote! {
                |#context_pattern: &#context_type, _: ::wattle_plugin::Empty| {
                    #function(#passed_context)
                }
            });
        }
        // The type hides the entry with the same name, which is the type of no field.
        Ok(quote! {{
            #[derive(::wattle_plugin::serde::Deserialize, ::wattle_plugin::schemars::JsonSchema)]
            #[serde(crate = "::wattle_plugin::serde")]
            #[schemars(crate = "::wattle_plugin::schemars")]
            #[allow(non_camel_case_types, reason = "shares the function's name")]
            struct #function {
                #(#fields,)*
            }
            |#context_pattern: &#context_type, #arguments: #function| {
                #function(#passed_context #(#arguments.#names),*)
            }
        }})
    }

    /// Returns the name of each field, and its declaration.
    fn names_and_fields<'s>(
        &self,
        signature: &'s Signature,
    ) -> syn::Result<(Vec<&'s Ident>, Vec<TokenStream>)> {
        let parameters = signature.inputs.iter().skip(usize::from(self.has_context));
        let typed = parameters.filter_map(|parameter| match parameter {
            FnArg::Typed(typed) => Some(typed),
            FnArg::Receiver(_) => None,
        });
        let (mut names, mut fields) = (Vec::new(), Vec::new());
        for (parameter, attributes) in typed.zip(&self.attributes) {
            if let Some(cfg) = attributes.iter().find(|attribute| attribute.path().is_ident("cfg"))
            {
                let field = self.types.field;
                let message = format!("{field} cannot depend on `cfg`: put it at the function");
                return Err(Error::new(cfg.span(), message));
            }
            let (name, of) = self.field(parameter)?;
            names.push(name);
            fields.push(quote!(#(#attributes)* #name: #of));
        }
        Ok((names, fields))
    }

    /// Returns the name and the type of a field.
    fn field<'s>(&self, parameter: &'s PatType) -> syn::Result<(&'s Ident, &'s Type)> {
        let field = self.types.field;
        let Pat::Ident(name) = &*parameter.pat else {
            let message = format!("expected the name of {field}");
            return Err(Error::new(parameter.pat.span(), message));
        };
        let of: &Type = &parameter.ty;
        if has_reference(of.to_token_stream()) {
            let message = format!(
                "{field} is owned: take `String` in the place of `&str`; only a context, which is \
                 the first parameter, is a reference"
            );
            return Err(Error::new(of.span(), message));
        }
        Ok((&name.ident, of))
    }
}

/// Returns true if a type is a reference. The type of a parameter of `macro_rules!` is in a group.
fn is_reference(of: &Type) -> bool {
    match of {
        Type::Reference(_) => true,
        Type::Group(group) => is_reference(&group.elem),
        Type::Paren(paren) => is_reference(&paren.elem),
        _ => false,
    }
}

fn take_attributes(parameter: &mut FnArg) -> Vec<Attribute> {
    let attributes = match parameter {
        FnArg::Typed(typed) => &mut typed.attrs,
        FnArg::Receiver(receiver) => &mut receiver.attrs,
    };
    let (levels, of_field) = mem::take(attributes).into_iter().partition(is_lint_level);
    *attributes = levels;
    of_field
}

fn is_lint_level(attribute: &Attribute) -> bool {
    LINT_LEVELS.iter().any(|level| attribute.path().is_ident(level))
}

/// Returns true if the tokens of a type have a reference, as those of `Option<&str>`.
fn has_reference(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => has_reference(group.stream()),
        TokenTree::Punct(punct) => punct.as_char() == '&',
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use proc_macro2::{Delimiter, Group};
    use quote::quote;
    use syn::{ItemFn, parse_quote, parse_str};

    use super::{Fields, Types};

    fn parsed(function: &str) -> ItemFn {
        parse_str(function).unwrap()
    }

    /// Takes the fields of a function, which may follow its context.
    fn take(function: &mut ItemFn, after_context: bool) -> Option<Fields> {
        let types = Types { context: quote!(Context), output: "Output", field: "a field" };
        Fields::take(types, &mut function.sig, after_context)
    }

    /// Returns the closure, or the message of the error.
    fn expanded(function: &str) -> Result<String, String> {
        let mut function = parsed(function);
        let fields = take(&mut function, true).unwrap();
        let closure = fields.closure(&function.sig);
        closure.map(|closure| closure.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn function_without_a_context_has_its_fields_as_parameters() {
        for (function, expected) in [
            ("fn f() -> Answer { work() }", true),
            ("fn f(a: A) -> Answer { work() }", true),
            ("fn f(a: A, b: B, c: C) -> Answer { work() }", true),
            ("fn f(c: &ToolContext, args: Args) -> Answer { work() }", false),
            ("fn f(c: (&ToolContext), args: Args) -> Answer { work() }", false),
            ("fn f(self) -> Answer { work() }", false),
        ] {
            assert_eq!(take(&mut parsed(function), false).is_some(), expected, "{function}");
        }
    }

    #[test]
    fn parameters_after_a_context_are_fields_only_if_the_attribute_says_so() {
        let function = "fn f(c: &Context, /** Words. */ a: A) -> Answer { work() }";
        assert!(take(&mut parsed(function), false).is_none());
        let fields = take(&mut parsed(function), true).unwrap();
        assert!(fields.has_context && fields.attributes.len() == 1);
        assert_eq!(fields.form(), "fn(&Context, name: Type, ...) -> Result<Output, Failure>");
        let text = expanded(function).unwrap();
        for part in ["| context : & Context , arguments : f |", "f (context , arguments . a)"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(take(&mut parsed("fn f(&self, a: A) -> Answer { work() }"), true).is_none());
    }

    #[test]
    fn context_may_be_a_type_of_another_macro() {
        let context = Group::new(Delimiter::None, quote!(&ToolContext));
        let mut function: ItemFn = parse_quote!(fn f(c: #context, args: Args) -> Answer { work() });
        assert!(take(&mut function, false).is_none());
    }

    #[test]
    fn parameters_become_fields_with_their_attributes() {
        let text = expanded(
            "fn f(/** Words. */ title: String, #[serde(default)] mut r#type: Option<B>) -> A {}",
        )
        .unwrap();
        for part in [
            "Words.",
            "title : String ,",
            "serde (default)",
            "r#type : Option < B > ,",
            "f (arguments . title , arguments . r#type)",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains("mut"), "{text}");
    }

    #[test]
    fn attributes_do_not_stay_at_parameters() {
        let mut function = parsed("fn f(/** Words. */ #[serde(default)] title: String) -> A {}");
        let fields = take(&mut function, false).unwrap();
        assert_eq!(fields.attributes[0].len(), 2);
        let text = quote!(#function).to_string();
        assert!(text.contains("f (title : String)"), "{text}");
    }

    #[test]
    fn levels_of_lints_stay_at_parameters() {
        let function = "fn f(/** Words. */ #[expect(unused_variables)] title: String) -> A {}";
        let mut function = parsed(function);
        let attributes = take(&mut function, false).unwrap().attributes;
        assert!(attributes[0].len() == 1 && attributes[0][0].path().is_ident("doc"));
        let text = quote!(#function).to_string();
        assert!(text.contains("f (# [expect (unused_variables)] title : String)"), "{text}");
    }

    #[test]
    fn function_without_fields_takes_an_empty_input() {
        for (function, call) in [
            ("fn f() -> Answer { work() }", "{ f () }"),
            ("fn f(c: &Context) -> Answer { work() }", "{ f (context ,) }"),
        ] {
            let text = expanded(function).unwrap();
            assert!(text.contains(":: wattle_plugin :: Empty") && text.ends_with(call), "{text}");
        }
    }

    #[test]
    fn parameters_that_cannot_be_fields_are_rejected() {
        for (function, expected) in [
            ("fn f(Point { x, y }: Point) -> Answer { work() }", "the name of a field"),
            ("fn f(a: A, text: &str) -> Answer { work() }", "take `String`"),
            ("fn f(text: Option<&str>) -> Answer { work() }", "take `String`"),
            ("fn f(pair: (u8, &str)) -> Answer { work() }", "take `String`"),
            ("fn f(#[cfg(unix)] a: A) -> Answer { work() }", "put it at the function"),
            ("fn f(a: A, c: &ToolContext) -> Answer { work() }", "only a context"),
        ] {
            let problem = expanded(function).unwrap_err();
            assert!(problem.contains(expected), "{function}: {problem}");
        }
    }
}
