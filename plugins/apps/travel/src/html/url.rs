//! Which addresses a page may name. What is not known to be harmless is left out.

/// What a path of the host's own pictures begins with.
const BLOBS: &str = "/blobs/";

/// What links may begin with.
const LINKS: [&str; 4] = ["https://", "http://", "mailto:", "tel:"];

/// What pictures inside of a page may begin with. A vector picture is a document of its own.
const PICTURES: [&str; 5] = [
    "data:image/png;base64,",
    "data:image/jpeg;base64,",
    "data:image/jpg;base64,",
    "data:image/webp;base64,",
    "data:image/gif;base64,",
];

/// Whether a page may show a picture from there: from elsewhere by `https`, from this host's blob
/// store, or as a part of the page.
pub(crate) fn is_image(url: &str) -> bool {
    begins_with(url, "https://") && is_printable(url)
        || is_blob(url)
        || PICTURES.iter().any(|prefix| begins_with(url, prefix) && is_base64(&url[prefix.len()..]))
}

/// Whether a page may lead there.
pub(crate) fn is_link(url: &str) -> bool {
    let leads_out = LINKS.iter().any(|prefix| begins_with(url, prefix));
    (leads_out || url.starts_with('#')) && is_printable(url) || is_blob(url)
}

/// An address as it stands in a page, without what browsers ignore around and in it. Blanks and
/// apostrophes in the middle, which names of places have, are encoded.
pub(super) fn tidy(url: &str) -> String {
    let is_blank = |c: char| c.is_ascii_control() || c == ' ';
    let url: String = url.trim_matches(is_blank).chars().filter(|c| !is_break(*c)).collect();
    url.replace(' ', "%20").replace('\'', "%27")
}

/// Characters that browsers take out of an address.
fn is_break(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r')
}

fn begins_with(url: &str, prefix: &str) -> bool {
    let head = url.as_bytes().get(..prefix.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()))
}

/// Whether an address means the same in HTML and in CSS.
fn is_printable(url: &str) -> bool {
    !url.chars().any(|c| c.is_control() || matches!(c, ' ' | '"' | '\'' | '<' | '>' | '\\'))
}

/// A path to a blob and to nothing else: no way up, no query.
fn is_blob(url: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '/');
    url.strip_prefix(BLOBS)
        .is_some_and(|path| !path.is_empty() && path.chars().all(is_plain) && !path.contains(".."))
}

fn is_base64(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    !text.is_empty() && text.chars().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::{is_image, is_link, tidy};

    #[test]
    fn pictures_come_from_https_blobs_or_the_page() {
        for url in [
            "https://images.unsplash.com/photo-1?w=1080&q=80",
            "HTTPS://A",
            "/blobs/~/abc-_.def",
            "data:image/png;base64,iVBORw0KGgo=",
            "data:image/WEBP;base64,AA",
        ] {
            assert!(is_image(url), "{url}");
        }
        for url in [
            "",
            "http://a/b.png",
            "//a/b.png",
            "/api/sessions",
            "/blobs/",
            "/blobs/../api",
            "/blobs/a?b",
            "/blobs/%2e%2e/a",
            "a.png",
            "data:image/svg+xml;base64,AA",
            "data:image/png,<svg>",
            "data:text/html;base64,AA",
            "javascript:alert(1)",
            "https://a/\"x",
            "https://a/ x",
            "https:/\\a",
        ] {
            assert!(!is_image(url), "{url}");
        }
    }

    #[test]
    fn links_lead_to_the_web_and_to_people() {
        for url in [
            "https://www.openstreetmap.org/?mlat=35.7&mlon=139.8",
            "http://a",
            "mailto:a@b.c",
            "tel:+81",
            "#food",
            "/blobs/~/a",
        ] {
            assert!(is_link(url), "{url}");
        }
        for url in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            "vbscript:x",
            "data:text/html,x",
            "blob:https://a/b",
            "file:///etc",
            "/api",
            "//a",
            "x",
            "",
        ] {
            assert!(!is_link(url), "{url}");
        }
    }

    #[test]
    fn addresses_are_tidied_as_browsers_do() {
        assert_eq!(tidy(" \u{1}java\tscr\nipt:x \r"), "javascript:x");
        assert_eq!(tidy("https://a/Tokyo Tower"), "https://a/Tokyo%20Tower");
    }
}
