//! The attribute `#[handler]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Error, GenericArgument, Ident, ItemFn, LitInt, LitStr, Macro, PathArguments, Token, Type, token,
};

use crate::{doc, entry, signature};

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Status of a response whose status is not declared.
const OK: u16 = 200;

/// Arguments of the attribute, such as `POST, "/api/items/{id}", body = Item, returns = Item`.
pub(crate) struct Endpoint {
    method: String,
    path: String,
    declarations: Vec<Declaration>,
}

/// A part of a request or of a response.
enum Declaration {
    /// A parameter of the query string.
    Query { name: String, of: Type, is_required: bool },
    /// The JSON body of the request.
    Body { of: Type, is_required: bool },
    /// A response with a JSON body, or without a body.
    Returns { status: u16, of: Option<Type> },
    /// The data of the events of a stream.
    Events(Type),
    /// The media type of a response with a body of bytes.
    Bytes(LitStr),
    /// The JSON body of all other responses.
    Error(Type),
}

impl Parse for Endpoint {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let method: Ident = input.parse()?;
        if !METHODS.iter().any(|known| method == known) {
            let known = METHODS.join("`, `");
            return Err(Error::new(method.span(), format!("expected one of `{known}`")));
        }
        input.parse::<Token![,]>()?;
        let path = path(input)?;
        if !path.value().starts_with('/') {
            return Err(Error::new(path.span(), "a path must start with `/`"));
        }
        let mut declarations = Vec::new();
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            parse_declaration(input, &mut declarations)?;
        }
        Ok(Self { method: method.to_string(), path: path.value(), declarations })
    }
}

/// Parses a path: a literal, or `concat!` of literals, which is for macros that take a part of the
/// path.
fn path(input: ParseStream<'_>) -> syn::Result<LitStr> {
    if !input.peek2(Token![!]) {
        return input.parse();
    }
    let joined: Macro = input.parse()?;
    if !joined.path.is_ident("concat") {
        return Err(Error::new(joined.path.span(), "expected a path such as `\"/api/items\"`"));
    }
    let parts = joined.parse_body_with(Punctuated::<LitStr, Token![,]>::parse_terminated)?;
    let text: String = parts.iter().map(LitStr::value).collect();
    Ok(LitStr::new(&text, joined.path.span()))
}

fn parse_declaration(
    input: ParseStream<'_>,
    declarations: &mut Vec<Declaration>,
) -> syn::Result<()> {
    let key: Ident = input.parse()?;
    match key.to_string().as_str() {
        "query" => {
            let content;
            syn::parenthesized!(content in input);
            let parameters = Punctuated::<_, Token![,]>::parse_terminated_with(&content, query)?;
            declarations.extend(parameters);
        }
        "body" => {
            let (of, is_required) = optional(assigned(input)?);
            declarations.push(Declaration::Body { of, is_required });
        }
        "returns" => declarations.push(returns(input, &key)?),
        "events" => declarations.push(Declaration::Events(assigned(input)?)),
        "bytes" => declarations.push(Declaration::Bytes(assigned(input)?)),
        "error" => declarations.push(Declaration::Error(assigned(input)?)),
        _ => {
            return Err(Error::new(
                key.span(),
                "expected `query(...)`, `body`, `returns`, `events`, `bytes` or `error`",
            ));
        }
    }
    Ok(())
}

/// Parses `= value`.
fn assigned<T: Parse>(input: ParseStream<'_>) -> syn::Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// Parses a parameter of the query string, such as `limit: Option<u32>`. The name may be a keyword,
/// such as `type`.
fn query(input: ParseStream<'_>) -> syn::Result<Declaration> {
    let name = Ident::parse_any(input)?.unraw();
    input.parse::<Token![:]>()?;
    let (of, is_required) = optional(input.parse()?);
    Ok(Declaration::Query { name: name.to_string(), of, is_required })
}

/// Parses the rest of `returns = Type`, `returns(201) = Type` or `returns(204)`.
fn returns(input: ParseStream<'_>, key: &Ident) -> syn::Result<Declaration> {
    let status = if input.peek(token::Paren) { Some(status(input)?) } else { None };
    let of = if input.peek(Token![=]) { Some(assigned(input)?) } else { None };
    if status.is_none() && of.is_none() {
        let message = "expected `returns = Type`, `returns(201) = Type` or `returns(204)`";
        return Err(Error::new(key.span(), message));
    }
    Ok(Declaration::Returns { status: status.unwrap_or(OK), of })
}

fn status(input: ParseStream<'_>) -> syn::Result<u16> {
    let content;
    syn::parenthesized!(content in input);
    let literal: LitInt = content.parse()?;
    let status: u16 = literal.base10_parse()?;
    if !content.is_empty() || !(100..=599_u16).contains(&status) {
        return Err(Error::new(literal.span(), "expected a status from 100 to 599"));
    }
    Ok(status)
}

/// Returns the type within `Option`, and whether the type is no `Option`.
fn optional(of: Type) -> (Type, bool) {
    match within_option(&of) {
        Some(inner) => (inner.clone(), false),
        None => (of, true),
    }
}

fn within_option(of: &Type) -> Option<&Type> {
    let Type::Path(path) = of else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) => Some(inner),
        _ => None,
    }
}

impl Declaration {
    /// Returns the statement that adds the declaration to a description.
    fn statement(&self) -> TokenStream {
        match self {
            Self::Query { name, of, is_required } => {
                quote!(operation.query::<#of>(#name, #is_required);)
            }
            Self::Body { of, is_required } => quote!(operation.body::<#of>(#is_required);),
            Self::Returns { status, of: Some(of) } => quote!(operation.returns::<#of>(#status);),
            Self::Returns { status, of: None } => quote!(operation.returns_nothing(#status);),
            Self::Events(of) => quote!(operation.events::<#of>();),
            Self::Bytes(media_type) => quote!(operation.bytes(#media_type);),
            Self::Error(of) => quote!(operation.error::<#of>();),
        }
    }
}

/// The signature that the attribute requires, and its number of arguments.
const FORM: &str = "fn(&Request) -> Result<Response, Failure>";
const INPUTS: usize = 1;

/// Returns the function and its entry type. After a compile error, the entry does not name the
/// function.
pub(crate) fn expand(endpoint: &Endpoint, function: ItemFn) -> TokenStream {
    let Endpoint { method, path, declarations } = endpoint;
    let doc = doc::text(&function.attrs);
    let ident = &function.sig.ident;
    let (target, error) = match signature::check(&function.sig, FORM, INPUTS) {
        Ok(()) => (quote_spanned!(function.sig.inputs.span() => #ident), None),
        Err(error) => {
            let none = entry::none();
            (quote!(|_| #none), Some(error.into_compile_error()))
        }
    };
    let describe = if declarations.is_empty() {
        quote!(|_| {})
    } else {
        let statements = declarations.iter().map(Declaration::statement);
        quote!(|operation| { #(#statements)* })
    };
    let implementation = quote! {
        const ENTRY: ::wattle_plugin::export::HandlerEntry =
            ::wattle_plugin::export::HandlerEntry {
                method: #method,
                path: #path,
                doc: #doc,
                describe: #describe,
                handle: #target,
            };
    };
    let entry = entry::beside(function, &Ident::new("Handler", Span::call_site()), &implementation);
    quote!(#error #entry)
}

#[cfg(test)]
mod tests {
    use syn::{ItemFn, parse_quote, parse_str};

    use super::{Endpoint, expand};

    fn expanded(arguments: &str) -> String {
        let endpoint: Endpoint = parse_str(arguments).unwrap();
        let function: ItemFn = parse_quote! {
            /// Renames an item.
            fn rename(request: &Request) -> Result<Response, Failure> { work() }
        };
        expand(&endpoint, function).to_string()
    }

    #[test]
    fn method_and_path_are_parsed() {
        let endpoint: Endpoint = parse_str("POST, \"/api/items/{id}\"").unwrap();
        assert_eq!(endpoint.method, "POST");
        assert_eq!(endpoint.path, "/api/items/{id}");
        assert!(endpoint.declarations.is_empty());
    }

    #[test]
    fn path_may_be_joined() {
        let endpoint: Endpoint =
            parse_str("GET, concat!(\"/api\", \"/{id}\",), query(a: u32)").unwrap();
        assert_eq!((endpoint.path.as_str(), endpoint.declarations.len()), ("/api/{id}", 1));
    }

    #[test]
    fn entry_has_the_documentation_of_the_function() {
        let text = expanded("POST, \"/api/items\",");
        assert!(text.contains("doc : \"Renames an item.\""), "{text}");
        assert!(text.contains("describe : | _ | { }"), "{text}");
    }

    #[test]
    fn declared_types_become_a_description() {
        let text = expanded(
            "POST, \"/api/items\", query(after: Option<u64>, kind: Kind), body = Option<Item>, \
             returns = Item, returns(201) = Vec<Item>, returns(204), events = Step, \
             bytes = \"text/csv\", error = Problem",
        );
        for statement in [
            "operation . query :: < u64 > (\"after\" , false)",
            "operation . query :: < Kind > (\"kind\" , true)",
            "operation . body :: < Item > (false)",
            "operation . returns :: < Item > (200u16)",
            "operation . returns :: < Vec < Item > > (201u16)",
            "operation . returns_nothing (204u16)",
            "operation . events :: < Step > ()",
            "operation . bytes (\"text/csv\")",
            "operation . error :: < Problem > ()",
        ] {
            assert!(text.contains(statement), "{statement} is not in {text}");
        }
    }

    #[test]
    fn parameter_may_be_named_like_a_keyword() {
        let text = expanded("GET, \"/api/items\", query(type: Kind, r#in: Option<u64>)");
        for statement in [
            "operation . query :: < Kind > (\"type\" , true)",
            "operation . query :: < u64 > (\"in\" , false)",
        ] {
            assert!(text.contains(statement), "{statement} is not in {text}");
        }
    }

    #[test]
    fn entry_after_an_error_does_not_name_the_function() {
        let endpoint: Endpoint = parse_str("GET, \"/items\"").unwrap();
        let function: ItemFn = parse_quote! {
            fn items() -> Result<Response, Failure> { work() }
        };
        let text = expand(&endpoint, function).to_string();
        assert!(text.contains("fn(&Request) -> Result<Response, Failure>"), "{text}");
        assert!(text.contains("handle : | _ | :: std :: unreachable ! ()"), "{text}");
    }

    #[test]
    fn invalid_endpoints_are_rejected() {
        for text in [
            "post, \"/a\"",
            "POST",
            "POST, \"a\"",
            "POST, format!(\"/a\")",
            "POST, concat!(\"/a\", 1)",
            "POST, concat!(\"a\")",
            "\"/a\"",
            "GET, \"/a\" returns = Item",
            "GET, \"/a\", returns",
            "GET, \"/a\", returns(20) = Item",
            "GET, \"/a\", body",
            "GET, \"/a\", answers = Item",
            "GET, \"/a\", query(after)",
        ] {
            assert!(parse_str::<Endpoint>(text).is_err(), "{text}");
        }
    }
}
