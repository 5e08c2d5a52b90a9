//! Which addresses a page may name. What is not known to be harmless is left out.

/// What a path of the host's own pictures begins with.
const BLOBS: &str = "/blobs/";

/// Where photographs come from.
const PHOTOGRAPHS: &str = "https://images.unsplash.com/";

/// Where pictures of videos come from.
const THUMBNAILS: [&str; 2] = ["https://i.ytimg.com/", "https://img.youtube.com/"];

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

/// Which pictures a page may show.
#[derive(Debug, Clone)]
pub(super) enum Pictures {
    /// Any that a page may show at all.
    Any,
    /// Of those from elsewhere only these; each other one could tell its host who reads the page.
    Known(Vec<String>),
}

impl Pictures {
    /// Those from elsewhere that are known.
    pub(super) fn known<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Known(addresses.into_iter().map(tidy).collect())
    }

    /// Whether the page may show this one.
    pub(super) fn allow(&self, url: &str) -> bool {
        let is_known = match self {
            Self::Any => true,
            Self::Known(known) => {
                !begins_with(url, "https://") || known.iter().any(|known| known == url)
            }
        };
        is_known && is_image(url)
    }
}

/// Whether it is a picture that a tool's argument may name: a photograph or one of this host.
pub(crate) fn is_given_image(url: &str) -> bool {
    is_image(url) && (url.starts_with(PHOTOGRAPHS) || is_blob(url))
}

/// Whether it is a picture of a video that a tool's argument may name.
pub(crate) fn is_given_thumbnail(url: &str) -> bool {
    is_image(url) && THUMBNAILS.iter().any(|start| url.starts_with(start)) || is_given_image(url)
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
    use super::{Pictures, is_given_image, is_given_thumbnail, is_image, is_link, tidy};

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
    fn pictures_from_elsewhere_may_have_to_be_known() {
        let known = Pictures::known(["https://a/b c.png", "http://a/plain.png"]);
        for url in ["https://a/b%20c.png", "/blobs/~/a", "data:image/png;base64,AA"] {
            assert!(known.allow(url) && Pictures::Any.allow(url), "{url}");
        }
        for url in ["https://a/b%20c.png?x", "HTTPS://a/b", "http://a/plain.png", "x"] {
            assert!(!known.allow(url), "{url}");
        }
        assert!(Pictures::Any.allow("https://any"));
    }

    #[test]
    fn arguments_name_pictures_of_few_hosts() {
        for url in ["https://images.unsplash.com/a", "/blobs/~/a"] {
            assert!(is_given_image(url) && is_given_thumbnail(url), "{url}");
        }
        for url in [
            "https://images.unsplash.com.evil/a",
            "https://images.unsplash.com@evil/a",
            "https://a/",
            "data:image/png;base64,AA",
        ] {
            assert!(!is_given_image(url) && !is_given_thumbnail(url), "{url}");
        }
        assert!(is_given_thumbnail("https://i.ytimg.com/vi/a/hq.jpg"));
        assert!(!is_given_image("https://i.ytimg.com/vi/a/hq.jpg"));
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
