//! The attributes `#[node]`, `#[tool]` and `#[reducer]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Expr, Ident, ItemFn, LitStr, Signature, Token, Type};

use crate::parameters::{Fields, Types};
use crate::{doc, entry, signature};

/// The attribute of a function.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Node,
    Tool,
    Reducer,
}

/// Number of arguments of a function with one of these attributes.
const INPUTS: usize = 2;

impl Kind {
    fn entry_trait(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::Tool => "Tool",
            Self::Reducer => "Reducer",
        }
    }

    /// Returns the signature that the attribute requires.
    fn form(self) -> &'static str {
        match self {
            Self::Node => "fn(&Context, Input) -> Result<Output, Failure>",
            Self::Tool => "fn(&ToolContext, Args) -> Result<ToolOutput, Failure>",
            Self::Reducer => "fn(Option<Current>, Vec<Update>) -> Result<Value, Failure>",
        }
    }

    /// Returns the types of a function whose parameters are the fields of its input; `None` if the
    /// attribute does not accept such a function.
    fn types(self) -> Option<Types> {
        match self {
            Self::Node => Some(Types {
                context: quote!(::wattle_plugin::Context),
                output: "Output",
                field: "a channel",
            }),
            Self::Tool => Some(Types {
                context: quote!(::wattle_plugin::tool::ToolContext),
                output: "ToolOutput",
                field: "an argument",
            }),
            Self::Reducer => None,
        }
    }
}

/// Arguments of an attribute: `name = "..."` and the arguments of its kind. All are optional.
#[derive(Default)]
pub(crate) struct Arguments {
    name: Option<LitStr>,
    /// Type of a node's configuration.
    config: Option<Type>,
    /// The parameters of a node after its context are channels.
    channels: Option<Ident>,
    /// Constant with the channels that a node reads.
    reads: Option<Expr>,
    /// Hints of a tool. The identifiers give error messages their location.
    read_only: Option<Ident>,
    idempotent: Option<Ident>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut arguments = Self::default();
        while !input.is_empty() {
            arguments.parse_one(input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

impl Arguments {
    fn parse_one(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let key: Ident = input.parse()?;
        match key.to_string().as_str() {
            "name" => {
                input.parse::<Token![=]>()?;
                self.name = Some(input.parse()?);
            }
            "config" => {
                input.parse::<Token![=]>()?;
                self.config = Some(input.parse()?);
            }
            "channels" => self.channels = Some(key),
            "reads" => {
                input.parse::<Token![=]>()?;
                self.reads = Some(input.parse()?);
            }
            "read_only" => self.read_only = Some(key),
            "idempotent" => self.idempotent = Some(key),
            "accepts_invalid" => {
                return Err(Error::new(
                    key.span(),
                    "take `Unchecked<Args>` as arguments instead: the type declares that the tool \
                     accepts invalid ones",
                ));
            }
            _ => return Err(Error::new(key.span(), "expected `name = \"...\"`")),
        }
        Ok(())
    }

    /// Rejects arguments that the kind of attribute does not accept.
    fn check(&self, kind: Kind) -> syn::Result<()> {
        if let (Kind::Tool | Kind::Reducer, Some(channels)) = (kind, &self.channels) {
            return Err(Error::new(channels.span(), "only a node has channels"));
        }
        if let (Kind::Tool | Kind::Reducer, Some(reads)) = (kind, &self.reads) {
            return Err(Error::new(reads.span(), "only a node reads channels"));
        }
        match (kind, &self.config, self.read_only.as_ref().or(self.idempotent.as_ref())) {
            (Kind::Tool | Kind::Reducer, Some(config), _) => {
                Err(Error::new(config.span(), "only a node has a configuration"))
            }
            (Kind::Node | Kind::Reducer, _, Some(hint)) => {
                Err(Error::new(hint.span(), format!("only a tool can be `{hint}`")))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the function together with its entry type. After a compile error, the entry does not
/// name the function: `export!` still finds the entry, so nothing else is reported.
pub(crate) fn expand(kind: Kind, arguments: &Arguments, mut function: ItemFn) -> TokenStream {
    let has_channels = arguments.channels.is_some();
    let fields = kind.types().and_then(|it| Fields::take(it, &mut function.sig, has_channels));
    let (name, target, error) = match checked(kind, arguments, &function, fields.as_ref()) {
        Ok((name, target)) => (name, Some(target), None),
        Err(error) => (function.sig.ident.to_string(), None, Some(error.into_compile_error())),
    };
    let entry = entry::beside(
        function.clone(),
        &Ident::new(kind.entry_trait(), Span::call_site()),
        &implementation(kind, &name, arguments, &function, target.as_ref()),
    );
    quote!(#error #entry)
}

/// Returns the name of the entry and its function, if function and arguments are those of the
/// attribute. `fields` are the parameters of the function that are the fields of its input.
fn checked(
    kind: Kind,
    arguments: &Arguments,
    function: &ItemFn,
    fields: Option<&Fields>,
) -> syn::Result<(String, TokenStream)> {
    arguments.check(kind)?;
    let target = match fields {
        Some(fields) => {
            signature::check(&function.sig, &fields.form(), function.sig.inputs.len())?;
            fields.closure(&function.sig)?
        }
        None => {
            check_channels(kind, &function.sig)?;
            signature::check(&function.sig, kind.form(), INPUTS)?;
            target(function)
        }
    };
    Ok((checked_name(arguments, function)?, target))
}

/// Rejects a node with parameters after its context that are no channels.
fn check_channels(kind: Kind, signature: &Signature) -> syn::Result<()> {
    let is_node = matches!(kind, Kind::Node) && signature.receiver().is_none();
    if is_node && signature.inputs.len() > INPUTS {
        let message =
            "write `#[node(channels)]` to take channels as the parameters after a context";
        return Err(Error::new(signature.paren_token.span.join(), message));
    }
    Ok(())
}

/// Names the function. The span makes errors about wrong types point to the signature.
fn target(function: &ItemFn) -> TokenStream {
    let ident = &function.sig.ident;
    quote_spanned!(function.sig.inputs.span() => #ident)
}

fn implementation(
    kind: Kind,
    name: &str,
    arguments: &Arguments,
    function: &ItemFn,
    target: Option<&TokenStream>,
) -> TokenStream {
    let doc = doc::text(&function.attrs);
    match kind {
        Kind::Node => node(name, &doc, arguments, target),
        Kind::Tool => tool(name, &doc, arguments, target),
        Kind::Reducer => reducer(name, &doc, target),
    }
}

fn reducer(name: &str, doc: &str, target: Option<&TokenStream>) -> TokenStream {
    let reduce = match target {
        Some(target) => quote!(::wattle_plugin::export::reduce(#target, current, updates)),
        None => entry::none(),
    };
    quote! {
        const ENTRY: ::wattle_plugin::export::ReducerEntry =
            ::wattle_plugin::export::ReducerEntry {
                name: #name,
                doc: #doc,
                reduce: |current, updates| #reduce,
            };
    }
}

fn node(name: &str, doc: &str, arguments: &Arguments, target: Option<&TokenStream>) -> TokenStream {
    let config_schema = match &arguments.config {
        Some(config) => quote!(::std::option::Option::Some(
            ::wattle_plugin::export::node_config_schema::<#config>
        )),
        None => quote!(::std::option::Option::None),
    };
    let reads = match &arguments.reads {
        Some(reads) => quote!(::std::option::Option::Some(#reads)),
        None => quote!(::std::option::Option::None),
    };
    let function = match target {
        Some(target) => quote! {
            ::std::boxed::Box::new(::wattle_plugin::export::TypedNode(#target))
        },
        None => entry::none(),
    };
    quote! {
        const ENTRY: ::wattle_plugin::export::NodeEntry = ::wattle_plugin::export::NodeEntry {
            name: #name,
            doc: #doc,
            config_schema: #config_schema,
            reads: #reads,
            function: || #function,
        };
    }
}

fn tool(name: &str, doc: &str, arguments: &Arguments, target: Option<&TokenStream>) -> TokenStream {
    let read_only = arguments.read_only.is_some();
    let idempotent = arguments.idempotent.is_some();
    let function = match target {
        Some(target) => quote! {
            ::std::boxed::Box::new(::wattle_plugin::export::TypedTool(#target))
        },
        None => entry::none(),
    };
    quote! {
        const ENTRY: ::wattle_plugin::export::ToolEntry = ::wattle_plugin::export::ToolEntry {
            name: #name,
            description: #doc,
            hints: ::wattle_plugin::tool::ToolHints {
                read_only: #read_only,
                idempotent: #idempotent,
            },
            function: || #function,
        };
    }
}

/// Returns the name of the entry. Graphs and models use the name, so its characters are checked at
/// compile time instead of at load time.
fn checked_name(arguments: &Arguments, function: &ItemFn) -> syn::Result<String> {
    const LIMIT: usize = 64;
    let (name, span) = match &arguments.name {
        Some(name) => (name.value(), name.span()),
        None => (function.sig.ident.to_string(), function.sig.ident.span()),
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > LIMIT || !name.chars().all(allowed) {
        return Err(Error::new(span, "a name has 1 to 64 characters of `[a-zA-Z0-9_-]`"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use syn::{ItemFn, parse_quote, parse_str};

    use super::{Arguments, Kind, checked_name, expand};

    fn function() -> ItemFn {
        parse_quote! {
            /// Counts.
            fn count(ctx: &Context, input: Input) -> Result<Update, Failure> { work() }
        }
    }

    fn name(arguments: &str) -> Result<String, String> {
        let arguments: Arguments = parse_str(arguments).map_err(|error| error.to_string())?;
        checked_name(&arguments, &function()).map_err(|error| error.to_string())
    }

    #[test]
    fn entry_has_the_name_of_the_function_by_default() {
        assert_eq!(name("").as_deref(), Ok("count"));
        assert_eq!(name("name = \"count-words\"").as_deref(), Ok("count-words"));
    }

    #[test]
    fn invalid_arguments_are_rejected() {
        assert!(name("name = \"a b\"").is_err());
        assert!(name("name = \"\"").is_err());
        assert!(name("title = \"a\"").is_err());
        assert!(name("accepts_invalid").unwrap_err().contains("Unchecked<Args>"));
    }

    #[test]
    fn arguments_of_other_kinds_of_attributes_are_rejected() {
        let fits = |kind, text| {
            let arguments: Arguments = parse_str(text).unwrap();
            arguments.check(kind).is_ok()
        };
        assert!(fits(Kind::Node, "name = \"a\", config = Config, reads = READS,"));
        assert!(fits(Kind::Tool, "read_only, idempotent"));
        assert!(!fits(Kind::Tool, "config = Config"));
        assert!(fits(Kind::Node, "channels, config = Config"));
        assert!(!fits(Kind::Tool, "channels"));
        assert!(!fits(Kind::Tool, "reads = READS"));
        assert!(!fits(Kind::Node, "read_only"));
        assert!(!fits(Kind::Reducer, "idempotent"));
    }

    #[test]
    fn entry_has_the_configuration_schema_the_channels_and_the_hints() {
        let arguments = "config = crate::Config, reads = crate::READS";
        let arguments: Arguments = parse_str(arguments).unwrap();
        let text = expand(Kind::Node, &arguments, function()).to_string();
        assert!(text.contains("node_config_schema :: < crate :: Config >"), "{text}");
        assert!(text.contains("reads : :: std :: option :: Option :: Some (crate :: READS)"));
        let arguments: Arguments = parse_str("read_only").unwrap();
        let text = expand(Kind::Tool, &arguments, function()).to_string();
        assert!(text.contains("read_only : true , idempotent : false"), "{text}");
    }

    #[test]
    fn nodes_and_tools_take_their_fields_as_parameters() {
        let function: ItemFn = parse_quote! {
            fn count(/** Words. */ text: String) -> Result<ToolOutput, Failure> { work() }
        };
        for (kind, context) in [
            (Kind::Node, "| _ : & :: wattle_plugin :: Context , arguments : count |"),
            (Kind::Tool, "| _ : & :: wattle_plugin :: tool :: ToolContext , arguments : count |"),
        ] {
            let text = expand(kind, &Arguments::default(), function.clone()).to_string();
            for part in ["fn count (text : String)", "count (arguments . text)", context] {
                assert!(text.contains(part), "{part} is not in {text}");
            }
        }
        let text = expand(Kind::Reducer, &Arguments::default(), function).to_string();
        assert!(text.contains("expected the arguments of"), "{text}");
    }

    #[test]
    fn node_takes_channels_after_its_context_only_with_the_attribute() {
        let function: ItemFn = parse_quote! {
            fn count(ctx: &Context, text: String) -> Result<Update, Failure> { work() }
        };
        let with_channels: Arguments = parse_str("channels").unwrap();
        let text = expand(Kind::Node, &with_channels, function.clone()).to_string();
        assert!(text.contains("count (context , arguments . text)"), "{text}");
        let text = expand(Kind::Node, &Arguments::default(), function).to_string();
        assert!(text.contains("TypedNode (count)"), "{text}");

        let function: ItemFn = parse_quote! {
            fn count(ctx: &Context, a: A, b: B) -> Result<Update, Failure> { work() }
        };
        let text = expand(Kind::Node, &Arguments::default(), function).to_string();
        assert!(text.contains("write `#[node(channels)]`"), "{text}");
    }

    #[test]
    fn wrong_signature_with_arguments_as_parameters_is_rejected_with_the_expected_one() {
        let function: ItemFn = parse_quote!(
            fn count(text: String) {
                work()
            }
        );
        let text = expand(Kind::Tool, &Arguments::default(), function).to_string();
        assert!(text.contains("expected the result of `fn(name: Type, ...)"), "{text}");
        assert!(text.contains("Result<ToolOutput, Failure>"), "{text}");
    }

    #[test]
    fn node_keeps_its_function_and_gets_an_entry() {
        let arguments: Arguments = parse_str("").unwrap();
        let text = expand(Kind::Node, &arguments, function()).to_string();
        assert!(text.contains("fn count"), "{text}");
        assert!(text.contains("struct count"), "{text}");
        assert!(text.contains("doc : \"Counts.\""), "{text}");
        assert_eq!(text.matches("TypedNode (count)").count(), 1, "{text}");
    }

    #[test]
    fn entry_after_an_error_does_not_name_the_function() {
        for (kind, trait_name) in
            [(Kind::Node, "Node"), (Kind::Tool, "Tool"), (Kind::Reducer, "Reducer")]
        {
            let function: ItemFn = parse_quote! {
                async fn count(a: &Context, b: Input) -> Result<Update, Failure> { work() }
            };
            let text = expand(kind, &Arguments::default(), function).to_string();
            assert_eq!(text.matches("compile_error !").count(), 1, "{text}");
            assert!(text.contains("async fn count"), "{text}");
            assert!(text.contains(&format!("export :: {trait_name} for count")), "{text}");
            assert!(!text.contains("(count"), "{text}");
        }
    }
}
