//! What a plugin asks for: a TOML text that travels inside the component.

/// Puts the plugin's manifest into the component, as the custom section `wattle:manifest`. The
/// operator's grants are checked against it.
///
/// Takes a literal, or a file beside the source: `manifest!(include_str!("manifest.toml"))`.
///
/// ```
/// wattle_plugin::manifest!(
///     r#"
///     llm = ["chat"]
///     http = [{ host = "api.example.com" }]
///     "#
/// );
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! manifest {
    ($text:expr $(,)?) => {
        const _: () = {
            const TEXT: &str = $text;

            #[cfg(target_arch = "wasm32")]
            #[allow(unsafe_code, reason = "a custom section can only be made so")]
            #[used]
            #[unsafe(link_section = "wattle:manifest")]
            static MANIFEST: [u8; TEXT.len()] = $crate::manifest::bytes(TEXT);

            // Checked on every target, so that a missing file is found in native tests too.
            let _ = TEXT.len();
        };
    };
}

/// The bytes of a text, as an array.
#[doc(hidden)]
#[must_use]
pub const fn bytes<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let mut index = 0;
    while index < N {
        bytes[index] = text.as_bytes()[index];
        index += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_the_text() {
        const TEXT: &str = "a = 1";
        const BYTES: [u8; TEXT.len()] = super::bytes(TEXT);
        assert_eq!(&BYTES, b"a = 1");
    }
}
