//! Percent-encoding of query parameters.

/// Appends `name=value` to the query of a URL. The fragment remains after the query.
pub(super) fn append(url: &mut String, name: &str, value: &str) {
    let fragment = url.find('#').map(|at| url.split_off(at));
    url.push(if url.contains('?') { '&' } else { '?' });
    encode(url, name);
    url.push('=');
    if is_secret(value) {
        url.push_str(value);
    } else {
        encode(url, value);
    }
    url.push_str(fragment.as_deref().unwrap_or_default());
}

/// Returns true if a value is a placeholder of a secret, whose braces must not be encoded.
fn is_secret(value: &str) -> bool {
    let name = value.strip_prefix("{{secret:").and_then(|rest| rest.strip_suffix("}}"));
    name.is_some_and(|name| !name.contains(['{', '}', '&', '#']))
}

fn encode(url: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            url.push('%');
            url.push(char::from(HEX[usize::from(byte >> 4)]));
            url.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::append;

    fn appended(url: &str, name: &str, value: &str) -> String {
        let mut url = url.to_owned();
        append(&mut url, name, value);
        url
    }

    #[test]
    fn parameters_are_encoded() {
        assert_eq!(appended("https://a/b", "q", "x y&z"), "https://a/b?q=x%20y%26z");
        assert_eq!(appended("https://a/b?c=1", "q", "\u{00e9}"), "https://a/b?c=1&q=%C3%A9");
        assert_eq!(appended("https://a/b#top", "q", "1"), "https://a/b?q=1#top");
    }

    #[test]
    fn only_a_whole_placeholder_is_not_encoded() {
        assert_eq!(appended("https://a", "k", "{{secret:KEY}}"), "https://a?k={{secret:KEY}}");
        assert!(appended("https://a", "k", "{{secret:A}}&b={{secret:B}}").contains("%26"));
    }
}
