//! The manifest of a plugin: TOML text in a custom section of the component.

/// Embeds the manifest in the component, as the custom section `wattle:manifest`. The manifest
/// requests the permissions that the plugin needs. The host intersects them with the operator's
/// grants.
///
/// The manifest of a component of an app has no effect: `[needs]` in `app.toml` requests the
/// permissions of the components.
///
/// The argument is a literal, or a file next to the source:
/// `manifest!(include_str!("manifest.toml"))`.
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
            #[allow(unsafe_code, reason = "a custom section needs the attribute `link_section`")]
            #[used]
            #[unsafe(link_section = "wattle:manifest")]
            static MANIFEST: [u8; TEXT.len()] = $crate::manifest::bytes(TEXT);

            // The use of `TEXT` makes native tests detect a missing file, too.
            let _ = TEXT.len();
        };
    };
}

/// Returns the bytes of a string as an array.
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
    fn bytes_equal_those_of_the_text() {
        const TEXT: &str = "a = 1";
        const BYTES: [u8; TEXT.len()] = super::bytes(TEXT);
        assert_eq!(&BYTES, b"a = 1");
    }
}
