//! The URLs that a page may have. A URL that is not known to be harmless is left out.

use wattle_plugin::prelude::{Failure, settings};

/// Path prefix of the host's own images.
const BLOBS: &str = "/blobs/";

/// Setting with the base URL of photographs, and its default.
const PHOTOGRAPHS: (&str, &str) = ("unsplash_image_base_url", "https://images.unsplash.com");

/// Setting with the base URLs of images of videos, and its default.
const THUMBNAILS: (&str, [&str; 2]) =
    ("thumbnail_base_urls", ["https://i.ytimg.com", "https://img.youtube.com"]);

/// Prefixes of links.
const LINKS: [&str; 4] = ["https://", "http://", "mailto:", "tel:"];

/// Prefixes of images inside of a page. Vector images are not among them, because each is a
/// document of its own.
const PICTURES: [&str; 5] = [
    "data:image/png;base64,",
    "data:image/jpeg;base64,",
    "data:image/jpg;base64,",
    "data:image/webp;base64,",
    "data:image/gif;base64,",
];

/// The services whose images guides show, as base URLs with a trailing slash.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sources {
    photographs: String,
    thumbnails: Vec<String>,
}

impl Sources {
    /// Reads the services from the settings.
    ///
    /// # Errors
    ///
    /// Returns `invalid` if a setting is not the URL of a service.
    pub(crate) fn read() -> Result<Self, Failure> {
        let photographs = settings::get::<String>(PHOTOGRAPHS.0)?;
        let thumbnails = settings::get::<Vec<String>>(THUMBNAILS.0)?;
        let own = Self::default();
        let all = |addresses: Vec<String>| {
            addresses.iter().map(|address| base(THUMBNAILS.0, address)).collect()
        };
        Ok(Self {
            photographs: photographs
                .map_or(Ok(own.photographs), |address| base(PHOTOGRAPHS.0, &address))?,
            thumbnails: thumbnails.map_or(Ok(own.thumbnails), all)?,
        })
    }

    /// Returns true if a page may show an image: from any host by `https`, from a service of the
    /// settings, from this host's blob store, or as a part of the page.
    pub(crate) fn is_image(&self, url: &str) -> bool {
        self.is_elsewhere(url) && is_printable(url)
            || is_blob(url)
            || PICTURES
                .iter()
                .any(|prefix| begins_with(url, prefix) && is_base64(&url[prefix.len()..]))
    }

    /// Returns true if a tool accepts this URL as an image: a photograph, or an image in the blob
    /// store of this host.
    pub(crate) fn is_given_image(&self, url: &str) -> bool {
        self.is_image(url) && (url.starts_with(&self.photographs) || is_blob(url))
    }

    /// Returns true if a tool accepts this URL as the thumbnail of a video: a URL of a service of
    /// thumbnails, or one that the tool accepts as an image.
    pub(crate) fn is_given_thumbnail(&self, url: &str) -> bool {
        self.is_image(url) && self.thumbnails.iter().any(|base| url.starts_with(base))
            || self.is_given_image(url)
    }

    /// Returns the base URL of photographs.
    pub(crate) fn photographs(&self) -> &str {
        &self.photographs
    }

    /// Returns the services that a policy for `https` alone would refuse, such as those of a test.
    pub(crate) fn plain(&self) -> impl Iterator<Item = &str> {
        self.all().filter(|base| !begins_with(base, "https://"))
    }

    fn is_elsewhere(&self, url: &str) -> bool {
        begins_with(url, "https://") || self.all().any(|base| url.starts_with(base))
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.photographs).chain(&self.thumbnails).map(String::as_str)
    }
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            photographs: format!("{}/", PHOTOGRAPHS.1),
            thumbnails: THUMBNAILS.1.iter().map(|base| format!("{base}/")).collect(),
        }
    }
}

/// Returns the base URL of a setting, with a trailing slash. It becomes a part of a policy, where a
/// space or a semicolon would begin another rule.
fn base(setting: &str, address: &str) -> Result<String, Failure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/[]".contains(c);
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"));
    match rest.map(|rest| rest.trim_end_matches('/')) {
        Some(rest) if !rest.is_empty() && rest.chars().all(is_plain) => {
            Ok(format!("{}/", address.trim_end_matches('/')))
        }
        _ => Err(Failure::invalid(format!(
            "setting `{setting}`: `{address}` is no address such as `https://images.example`"
        ))),
    }
}

/// The images that a page may show.
#[derive(Debug, Clone)]
pub(super) struct Pictures {
    sources: Sources,
    /// The permitted images from other origins; `None` permits all that a page may show. The server
    /// of an unknown image would learn who reads the page.
    known: Option<Vec<String>>,
}

impl Pictures {
    /// Permits all images that a page may show.
    pub(super) fn any(sources: &Sources) -> Self {
        Self { sources: sources.clone(), known: None }
    }

    /// Permits only known images from other origins.
    pub(super) fn known<'a>(
        sources: &Sources,
        addresses: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known = addresses.into_iter().map(tidy).collect();
        Self { sources: sources.clone(), known: Some(known) }
    }

    /// Returns true if any page may show the image.
    pub(super) fn is_image(&self, url: &str) -> bool {
        self.sources.is_image(url)
    }

    /// Returns true if this page may show the image.
    pub(super) fn allow(&self, url: &str) -> bool {
        let is_known = self.known.as_ref().is_none_or(|known| {
            !self.sources.is_elsewhere(url) || known.iter().any(|known| known == url)
        });
        is_known && self.is_image(url)
    }
}

/// Returns true for a path to a blob of this host, without `..` and without a query.
pub(crate) fn is_blob(url: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '/');
    url.strip_prefix(BLOBS)
        .is_some_and(|path| !path.is_empty() && path.chars().all(is_plain) && !path.contains(".."))
}

/// Returns true if a page may link to a URL.
pub(crate) fn is_link(url: &str) -> bool {
    let leads_out = LINKS.iter().any(|prefix| begins_with(url, prefix));
    (leads_out || url.starts_with('#')) && is_printable(url) || is_blob(url)
}

/// Returns a URL as a page has it, without the characters that browsers ignore. Spaces and
/// apostrophes in it, which names of places have, are encoded.
pub(super) fn tidy(url: &str) -> String {
    let is_blank = |c: char| c.is_ascii_control() || c == ' ';
    let url: String = url.trim_matches(is_blank).chars().filter(|c| !is_break(*c)).collect();
    url.replace(' ', "%20").replace('\'', "%27")
}

/// Returns true for characters that browsers remove from a URL.
fn is_break(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r')
}

fn begins_with(url: &str, prefix: &str) -> bool {
    let head = url.as_bytes().get(..prefix.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()))
}

/// Returns true if a URL means the same in HTML and in CSS.
fn is_printable(url: &str) -> bool {
    !url.chars().any(|c| c.is_control() || matches!(c, ' ' | '"' | '\'' | '<' | '>' | '\\'))
}

fn is_base64(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
    !text.is_empty() && text.chars().all(is_digit)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::testing::FakeHost;

    use super::{Pictures, Sources, is_link, tidy};

    #[test]
    fn images_come_from_https_blobs_or_the_page() {
        let all = "https://images.unsplash.com/photo-1?w=1080&q=80|HTTPS://A|/blobs/~/abc-_.def|\
            data:image/png;base64,iVBORw0KGgo=|data:image/WEBP;base64,AA";
        for url in all.split('|') {
            assert!(Sources::default().is_image(url), "{url}");
        }
        let all = "|http://a/b.png|//a/b.png|/api/sessions|/blobs/|/blobs/../api|/blobs/a?b|\
            /blobs/%2e%2e/a|a.png|data:image/svg+xml;base64,AA|data:image/png,<svg>|\
            data:text/html;base64,AA|javascript:alert(1)|https://a/\"x|https://a/ x|https:/\\a";
        for url in all.split('|') {
            assert!(!Sources::default().is_image(url), "{url}");
        }
    }

    #[test]
    fn images_from_other_origins_can_be_limited_to_known_ones() {
        let any = Pictures::any(&Sources::default());
        let known =
            Pictures::known(&Sources::default(), ["https://a/b c.png", "http://a/plain.png"]);
        for url in ["https://a/b%20c.png", "/blobs/~/a", "data:image/png;base64,AA"] {
            assert!(known.allow(url) && any.allow(url), "{url}");
        }
        for url in ["https://a/b%20c.png?x", "HTTPS://a/b", "http://a/plain.png", "x"] {
            assert!(!known.allow(url), "{url}");
        }
        assert!(any.allow("https://any"));
    }

    #[test]
    fn arguments_name_images_of_few_hosts() {
        let sources = Sources::default();
        let is_given_image = |url: &str| sources.is_given_image(url);
        let is_given_thumbnail = |url: &str| sources.is_given_thumbnail(url);
        for url in ["https://images.unsplash.com/a", "/blobs/~/a"] {
            assert!(is_given_image(url) && is_given_thumbnail(url), "{url}");
        }
        let all = "https://images.unsplash.com.evil/a|https://images.unsplash.com@evil/a|\
            https://a/|data:image/png;base64,AA";
        for url in all.split('|') {
            assert!(!is_given_image(url) && !is_given_thumbnail(url), "{url}");
        }
        assert!(is_given_thumbnail("https://i.ytimg.com/vi/a/hq.jpg"));
        assert!(!is_given_image("https://i.ytimg.com/vi/a/hq.jpg"));
    }

    #[test]
    fn settings_name_other_services() {
        let host = FakeHost::new()
            .setting("unsplash_image_base_url", "http://127.0.0.1:9/")
            .setting("thumbnail_base_urls", vec!["http://127.0.0.1:9/vi"]);
        let sources = host.run(Sources::read).unwrap();
        let (photo, still) = ("http://127.0.0.1:9/photo-1", "http://127.0.0.1:9/vi/a/hq.jpg");
        assert!(sources.is_image(photo) && sources.is_given_image(photo));
        assert!(sources.is_image(still) && sources.is_given_thumbnail(still));
        let expected = ["http://127.0.0.1:9/", "http://127.0.0.1:9/vi/"];
        assert_eq!(sources.plain().collect::<Vec<_>>(), expected);
        let known = Pictures::known(&sources, [photo]);
        assert!(known.allow(photo) && !known.allow(still));
        for other in ["http://127.0.0.1:99/a", "https://images.unsplash.com/a"] {
            assert!(!sources.is_given_image(other), "{other}");
        }
        assert_eq!(FakeHost::new().run(Sources::read).unwrap(), Sources::default());
        assert_eq!(Sources::default().plain().count(), 0);
    }

    #[test]
    fn setting_that_is_not_a_url_is_rejected() {
        for address in ["", "images.example", "https://", "https://a b", "https://a;script-src *"] {
            let host = FakeHost::new().setting("unsplash_image_base_url", address);
            let failure = host.run(Sources::read).unwrap_err();
            assert!(failure.message.contains("`unsplash_image_base_url`"), "{failure:?}");
        }
    }

    #[test]
    fn links_lead_to_the_web_and_to_people() {
        let all = "https://www.openstreetmap.org/?mlat=35.7&mlon=139.8|http://a|mailto:a@b.c|\
            tel:+81|#food|/blobs/~/a";
        for url in all.split('|') {
            assert!(is_link(url), "{url}");
        }
        let all = "javascript:alert(1)|JaVaScRiPt:alert(1)|vbscript:x|data:text/html,x|\
            blob:https://a/b|file:///etc|/api|//a|x|";
        for url in all.split('|') {
            assert!(!is_link(url), "{url}");
        }
    }

    #[test]
    fn urls_are_normalized_as_in_browsers() {
        assert_eq!(tidy(" \u{1}java\tscr\nipt:x \r"), "javascript:x");
        assert_eq!(tidy("https://a/Tokyo Tower"), "https://a/Tokyo%20Tower");
    }
}
