//! Documentation comments of functions.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the documentation of a function, without the blank that `///` leaves at the beginning of
/// each line.
pub(crate) fn text(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes.iter().filter_map(line).collect();
    lines.join("\n").trim().to_owned()
}

fn line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(meta) = &attribute.meta else {
        return None;
    };
    if !meta.path.is_ident("doc") {
        return None;
    }
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &meta.value else {
        return None;
    };
    let text = text.value();
    Some(text.strip_prefix(' ').unwrap_or(&text).to_owned())
}

#[cfg(test)]
mod tests {
    use syn::{ItemFn, parse_quote};

    use super::text;

    #[test]
    fn documentation_lines_are_joined_and_trimmed() {
        let function: ItemFn = parse_quote! {
            /// Counts words.
            ///
            ///  Indented.
            #[inline]
            fn f() {}
        };
        assert_eq!(text(&function.attrs), "Counts words.\n\n Indented.");
    }

    #[test]
    fn missing_documentation_is_empty() {
        let function: ItemFn = parse_quote! { fn f() {} };
        assert_eq!(text(&function.attrs), "");
    }
}
