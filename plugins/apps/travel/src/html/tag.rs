//! Start tags, written anew from what an element may keep: lower case, every value in double
//! quotes, no character in it that could begin or end a tag.

use crate::html::allow::{self, Value};
use crate::html::{css, entity, url};

/// An attribute as it stood in the document: its name in lower case, its value with references.
pub(super) type Attribute = (String, String);

/// Writes a start tag.
pub(super) fn start(element: &str, attributes: &[Attribute]) -> String {
    let mut tag = format!("<{element}");
    for (at, (name, raw)) in attributes.iter().enumerate() {
        // Of two attributes with one name the first counts.
        let is_first = attributes[..at].iter().all(|(other, _)| other != name);
        if let Some(kind) = allow::attribute(element, name).filter(|_| is_first)
            && let Some(value) = value(kind, raw)
        {
            tag.push_str(&format!(" {name}=\"{value}\""));
            if kind == Value::Target {
                // A page that opens must not get hold of the one that it came from.
                tag.push_str(" rel=\"noopener\"");
            }
        }
    }
    tag.push('>');
    tag
}

/// The value of an attribute, with its references read.
pub(super) fn read(attributes: &[Attribute], name: &str) -> Option<String> {
    let found = attributes.iter().find(|(known, _)| known == name);
    found.map(|(_, raw)| entity::decode(raw))
}

fn value(kind: Value, raw: &str) -> Option<String> {
    match kind {
        Value::Text => Some(entity::quote(raw)),
        Value::Style => Some(entity::encode(css::clean(&entity::decode(raw)).trim())),
        Value::Link => address(raw, url::is_link),
        Value::Image => address(raw, url::is_image),
        Value::Target => Some("_blank".to_owned()),
    }
}

fn address(raw: &str, is_allowed: fn(&str) -> bool) -> Option<String> {
    let address = url::tidy(&entity::decode(raw));
    is_allowed(&address).then(|| entity::encode(&address))
}

#[cfg(test)]
mod tests {
    use super::start;

    fn check(element: &str, attributes: &[(&str, &str)], expected: &str) {
        let attributes: Vec<_> = attributes
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(start(element, &attributes), expected);
    }

    #[test]
    fn what_is_allowed_is_written_anew() {
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
    fn addresses_follow_their_rules() {
        check("a", &[("href", " https://a/?b=1&c=2 "), ("target", "_top"), ("rel", "opener")], {
            r#"<a href="https://a/?b=1&amp;c=2" target="_blank" rel="noopener">"#
        });
        check("a", &[("href", "java&#10;script:alert(1)")], "<a>");
        check("img", &[("src", "http://a/b.png"), ("alt", "b")], r#"<img alt="b">"#);
        check("img", &[("src", "/blobs/~/a.b")], r#"<img src="/blobs/~/a.b">"#);
    }
}
