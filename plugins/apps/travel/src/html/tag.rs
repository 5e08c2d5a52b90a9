//! Start tags, rebuilt from what an element may keep: in lower case, with every value in double
//! quotes, and without a character in a value that could begin or end a tag.

use std::collections::BTreeSet;

use crate::html::allow::{self, Value};
use crate::html::url::Pictures;
use crate::html::{css, entity, url};

/// An attribute of the document: its name in lower case, and its value with references.
pub(super) type Attribute = (String, String);

/// Maximum number of attributes of an element. More are an attempt to keep readers busy.
const MAX_ATTRIBUTES: usize = 64;

/// Follows the URL of a link that leaves the page. The page may be shown in a frame, and a window
/// that the link opens must not get access to it.
const LEADS_OUT: &str = " target=\"_blank\" rel=\"noopener\"";

/// Writes a start tag.
pub(super) fn start(element: &str, attributes: &[Attribute], pictures: &Pictures) -> String {
    let mut tag = format!("<{element}");
    let mut known = BTreeSet::new();
    let mut kept = 0;
    for (name, raw) in attributes {
        // The first of two attributes with the same name counts.
        if let Some(kind) = allow::attribute(element, name)
            && known.insert(name.as_str())
            && let Some(value) = value(kind, raw, pictures)
        {
            tag.push_str(&format!(" {name}=\"{value}\""));
            if kind == Value::Link && !value.starts_with('#') {
                tag.push_str(LEADS_OUT);
            }
            kept += 1;
            if kept == MAX_ATTRIBUTES {
                break;
            }
        }
    }
    tag.push('>');
    tag
}

/// Returns the value of an attribute, with its references decoded.
pub(super) fn read(attributes: &[Attribute], name: &str) -> Option<String> {
    let found = attributes.iter().find(|(known, _)| known == name);
    found.map(|(_, raw)| entity::decode(raw))
}

fn value(kind: Value, raw: &str, pictures: &Pictures) -> Option<String> {
    match kind {
        Value::Text => Some(entity::quote(raw)),
        Value::Style => Some(entity::encode(css::clean(&entity::decode(raw), pictures).trim())),
        Value::Link => address(raw, url::is_link),
        Value::Image => address(raw, |address| pictures.allow(address)),
    }
}

fn address(raw: &str, is_allowed: impl Fn(&str) -> bool) -> Option<String> {
    let address = url::tidy(&entity::decode(raw));
    is_allowed(&address).then(|| entity::encode(&address))
}

#[cfg(test)]
mod tests {
    use super::{MAX_ATTRIBUTES, Pictures, start};
    use crate::html::Sources;

    fn check(element: &str, attributes: &[(&str, &str)], expected: &str) {
        let attributes: Vec<_> = attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(start(element, &attributes, &Pictures::any(&Sources::default())), expected);
    }

    #[test]
    fn permitted_attributes_are_rebuilt() {
        check("p", &[("class", "a"), ("title", "a \"<b>\" &amp; c")], {
            r#"<p class="a" title="a &quot;&lt;b&gt;&quot; &amp; c">"#
        });
        check("p", &[("onclick", "x()"), ("ONCLICK", "x()"), ("id", "1"), ("id", "2")], {
            r#"<p id="1">"#
        });
        check("p", &[("style", "color:red;background:url(&#106;avascript:x)")], {
            r#"<p style="color:red;background:none">"#
        });
    }

    #[test]
    fn urls_follow_their_rules() {
        check("a", &[("href", " https://a/?b=1&c=2 "), ("target", "_top"), ("rel", "opener")], {
            r#"<a href="https://a/?b=1&amp;c=2" target="_blank" rel="noopener">"#
        });
        check("a", &[("href", "java&#10;script:alert(1)")], "<a>");
        check("img", &[("src", "http://a/b.png"), ("alt", "b")], r#"<img alt="b">"#);
        check("img", &[("src", "/blobs/~/a.b")], r#"<img src="/blobs/~/a.b">"#);
    }
    #[test]
    fn number_of_attributes_is_limited() {
        let attributes = |count: usize, prefix: &str| -> Vec<_> {
            (0..count).map(|n| (format!("{prefix}{n}"), String::new())).collect()
        };
        let mut given = attributes(200_000, "x");
        given.extend(attributes(200_000, "data-"));
        let once = start("p", &given, &Pictures::any(&Sources::default()));
        assert_eq!(once.matches(" data-").count(), MAX_ATTRIBUTES);
        assert!(!once.contains(" x"), "{once}");
    }

    #[test]
    fn links_within_the_page_open_no_window() {
        check("a", &[("target", "_blank"), ("href", "#food")], r##"<a href="#food">"##);
        check("a", &[("href", "tel:+81")], r#"<a href="tel:+81" target="_blank" rel="noopener">"#);
        check("a", &[("target", "_blank")], "<a>");
    }
}
