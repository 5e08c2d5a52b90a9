//! Entry types. An entry type has the name of a function and implements one of the entry traits of
//! the SDK.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Ident, ItemFn, parse_quote};

/// Returns the function together with its entry type. `implementation` is the body of the trait
/// implementation.
pub(crate) fn beside(
    mut function: ItemFn,
    entry_trait: &Ident,
    implementation: &TokenStream,
) -> TokenStream {
    // The SDK requires this signature, so lints must not report it to the author of the plugin.
    function.attrs.push(parse_quote! {
        #[allow(
            clippy::needless_pass_by_value,
            clippy::unnecessary_wraps,
            reason = "the signature is the SDK's"
        )]
    });
    let visibility = &function.vis;
    let name = &function.sig.ident;
    quote! {
        #function

        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "shares the function's name")]
        #visibility struct #name {}

        impl ::wattle_plugin::export::#entry_trait for #name {
            #implementation
        }
    }
}

/// Returns the body of a closure of an entry whose function has an error of its own. It has every
/// type, and is never part of a plugin.
pub(crate) fn none() -> TokenStream {
    quote!(::std::unreachable!())
}
