//! The attribute `#[handler]`.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Error, Ident, ItemFn, LitStr, Token};

use crate::{doc, entry};

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Arguments of the attribute, such as `POST, "/api/items/{id}"`.
pub(crate) struct Endpoint {
    method: String,
    path: String,
}

impl Parse for Endpoint {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let method: Ident = input.parse()?;
        if !METHODS.iter().any(|known| method == known) {
            let known = METHODS.join("`, `");
            return Err(Error::new(method.span(), format!("expected one of `{known}`")));
        }
        input.parse::<Token![,]>()?;
        let path: LitStr = input.parse()?;
        input.parse::<Option<Token![,]>>()?;
        if !path.value().starts_with('/') {
            return Err(Error::new(path.span(), "a path must start with `/`"));
        }
        Ok(Self { method: method.to_string(), path: path.value() })
    }
}

/// Returns the function and its entry type.
pub(crate) fn expand(endpoint: &Endpoint, function: ItemFn) -> TokenStream {
    let Endpoint { method, path } = endpoint;
    let doc = doc::text(&function.attrs);
    let ident = &function.sig.ident;
    let target = quote_spanned!(function.sig.inputs.span() => #ident);
    let implementation = quote! {
        const ENTRY: ::wattle_plugin::export::HandlerEntry =
            ::wattle_plugin::export::HandlerEntry {
                method: #method,
                path: #path,
                doc: #doc,
                describe: |_| {},
                handle: #target,
            };
    };
    entry::beside(function, &Ident::new("Handler", Span::call_site()), &implementation)
}

#[cfg(test)]
mod tests {
    use syn::parse_str;

    use super::Endpoint;

    #[test]
    fn method_and_path_are_parsed() {
        let endpoint: Endpoint = parse_str("POST, \"/api/items/{id}\"").unwrap();
        assert_eq!(endpoint.method, "POST");
        assert_eq!(endpoint.path, "/api/items/{id}");
    }

    #[test]
    fn invalid_endpoints_are_rejected() {
        for text in ["post, \"/a\"", "POST", "POST, \"a\"", "\"/a\""] {
            assert!(parse_str::<Endpoint>(text).is_err(), "{text}");
        }
    }
}
