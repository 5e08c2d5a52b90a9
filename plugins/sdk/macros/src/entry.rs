//! Entry types, which have the name of a function and implement one of the SDK's entry traits.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Ident, ItemFn, parse_quote};

/// Returns the function and its entry type. `implementation` is the body of the trait.
pub(crate) fn beside(
    mut function: ItemFn,
    entry_trait: &Ident,
    implementation: &TokenStream,
) -> TokenStream {
    // The SDK prescribes the signature, so lints about it would blame the author of the plugin.
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
