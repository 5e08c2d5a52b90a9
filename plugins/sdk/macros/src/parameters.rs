//! Tools whose arguments are the parameters of their functions.

use std::mem;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Ident, Pat, PatType, Signature, Type};

/// The signature of a tool whose parameters are its arguments.
pub(crate) const FORM: &str = "fn(name: Type, ...) -> Result<ToolOutput, Failure>";

/// The attributes that set the levels of lints.
const LINT_LEVELS: [&str; 5] = ["allow", "deny", "expect", "forbid", "warn"];

/// Returns true if the parameters of a tool are its arguments. The first parameter of other tools
/// is a context, which is a reference.
pub(crate) fn are_arguments(signature: &Signature) -> bool {
    match signature.inputs.first() {
        Some(FnArg::Typed(first)) => !is_reference(&first.ty),
        Some(FnArg::Receiver(_)) => false,
        None => true,
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

/// Takes the attributes of each parameter that are for the field of the argument, such as
/// documentation. The compiler rejects them at parameters. Levels of lints stay at the parameter.
pub(crate) fn take_attributes(signature: &mut Signature) -> Vec<Vec<Attribute>> {
    let attributes = signature.inputs.iter_mut().map(|parameter| {
        let attributes = match parameter {
            FnArg::Typed(typed) => &mut typed.attrs,
            FnArg::Receiver(receiver) => &mut receiver.attrs,
        };
        let (levels, of_field) = mem::take(attributes).into_iter().partition(is_lint_level);
        *attributes = levels;
        of_field
    });
    attributes.collect()
}

fn is_lint_level(attribute: &Attribute) -> bool {
    LINT_LEVELS.iter().any(|level| attribute.path().is_ident(level))
}

/// Returns a closure with the signature of a tool, which passes the fields of the arguments to the
/// function. `attributes` are those of the parameters. The function is no method, which
/// [`signature::check`](crate::signature::check) rejects.
pub(crate) fn closure(
    signature: &Signature,
    attributes: &[Vec<Attribute>],
) -> syn::Result<TokenStream> {
    let function = &signature.ident;
    if signature.inputs.is_empty() {
        return Ok(quote! {
            |_: &::wattle_plugin::tool::ToolContext, _: ::wattle_plugin::Empty| #function()
        });
    }
    let mut names = Vec::new();
    let mut fields = Vec::new();
    let parameters = signature.inputs.iter().filter_map(|parameter| match parameter {
        FnArg::Typed(typed) => Some(typed),
        FnArg::Receiver(_) => None,
    });
    for (parameter, attributes) in parameters.zip(attributes) {
        if let Some(cfg) = attributes.iter().find(|attribute| attribute.path().is_ident("cfg")) {
            let message = "an argument cannot depend on `cfg`: put it at the function";
            return Err(Error::new(cfg.span(), message));
        }
        let (name, of) = argument(parameter)?;
        names.push(name);
        fields.push(quote!(#(#attributes)* #name: #of));
    }
    // The span keeps the variable apart from a function with the same name.
    let arguments = Ident::new("arguments", Span::mixed_site());
    // The type hides the entry with the same name, which is the type of no argument.
    Ok(quote! {{
        #[derive(::wattle_plugin::serde::Deserialize, ::wattle_plugin::schemars::JsonSchema)]
        #[serde(crate = "::wattle_plugin::serde")]
        #[schemars(crate = "::wattle_plugin::schemars")]
        #[allow(non_camel_case_types, reason = "shares the function's name")]
        struct #function {
            #(#fields,)*
        }
        |_: &::wattle_plugin::tool::ToolContext, #arguments: #function| {
            #function(#(#arguments.#names),*)
        }
    }})
}

/// Returns the name and the type of an argument.
fn argument(parameter: &PatType) -> syn::Result<(&Ident, &Type)> {
    let Pat::Ident(name) = &*parameter.pat else {
        return Err(Error::new(parameter.pat.span(), "expected the name of an argument"));
    };
    let of: &Type = &parameter.ty;
    if has_reference(of.to_token_stream()) {
        let message = "an argument is owned: take `String` in the place of `&str`; only a context \
                       is a reference, and the arguments after it are one type";
        return Err(Error::new(of.span(), message));
    }
    Ok((&name.ident, of))
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

    use super::{are_arguments, closure, take_attributes};

    fn parsed(function: &str) -> ItemFn {
        parse_str(function).unwrap()
    }

    /// Returns the closure, or the message of the error.
    fn expanded(function: &str) -> Result<String, String> {
        let mut function = parsed(function);
        let attributes = take_attributes(&mut function.sig);
        let closure = closure(&function.sig, &attributes);
        closure.map(|closure| closure.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn tool_without_a_context_has_its_arguments_as_parameters() {
        for (function, expected) in [
            ("fn f() -> Answer { work() }", true),
            ("fn f(a: A) -> Answer { work() }", true),
            ("fn f(a: A, b: B, c: C) -> Answer { work() }", true),
            ("fn f(c: &ToolContext, args: Args) -> Answer { work() }", false),
            ("fn f(c: (&ToolContext), args: Args) -> Answer { work() }", false),
            ("fn f(self) -> Answer { work() }", false),
        ] {
            assert_eq!(are_arguments(&parsed(function).sig), expected, "{function}");
        }
    }

    #[test]
    fn context_may_be_a_type_of_another_macro() {
        let context = Group::new(Delimiter::None, quote!(&ToolContext));
        let function: ItemFn = parse_quote!(fn f(c: #context, args: Args) -> Answer { work() });
        assert!(!are_arguments(&function.sig));
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
        let attributes = take_attributes(&mut function.sig);
        assert_eq!(attributes[0].len(), 2);
        let text = quote!(#function).to_string();
        assert!(text.contains("f (title : String)"), "{text}");
    }

    #[test]
    fn levels_of_lints_stay_at_parameters() {
        let function = "fn f(/** Words. */ #[expect(unused_variables)] title: String) -> A {}";
        let mut function = parsed(function);
        let attributes = take_attributes(&mut function.sig);
        assert!(attributes[0].len() == 1 && attributes[0][0].path().is_ident("doc"));
        let text = quote!(#function).to_string();
        assert!(text.contains("f (# [expect (unused_variables)] title : String)"), "{text}");
    }

    #[test]
    fn tool_without_arguments_takes_empty_ones() {
        let text = expanded("fn f() -> Answer { work() }").unwrap();
        assert!(text.contains(":: wattle_plugin :: Empty") && text.ends_with("f ()"), "{text}");
    }

    #[test]
    fn parameters_that_cannot_be_fields_are_rejected() {
        for (function, expected) in [
            ("fn f(Point { x, y }: Point) -> Answer { work() }", "the name of an argument"),
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
