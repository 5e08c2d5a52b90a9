//! The allowlists of a page. An element that is on no list loses its tags and keeps its content.

/// Elements that are kept.
const WRITTEN: &str = "a abbr address article aside b bdi bdo blockquote br caption cite code col \
    colgroup dd del details dfn div dl dt em figcaption figure footer h1 h2 h3 h4 h5 h6 header \
    hgroup hr i img ins kbd li main mark nav ol p pre q s section small span strong sub summary \
    sup table tbody td tfoot th thead time tr u ul var wbr";

/// Elements that are removed with their content: those that run, play, embed or request something,
/// those that browsers parse by special rules, and drawings, which are documents with scripts.
const HIDDEN: &str = "applet audio canvas datalist embed frame frameset iframe listing math \
    noembed noframes noscript object optgroup option plaintext script select svg template \
    textarea video xml xmp";

/// Elements without an end tag.
const VOID: &str = "br col hr img wbr";

/// Elements that end with their parent or with the next element of their kind. A superfluous end
/// tag of one of them could start another element.
const OPEN_ENDED: &str = "caption colgroup dd dt li p tbody td tfoot th thead tr";

/// Harmless names of `<meta>`.
const META_NAMES: &str = "author color-scheme description keywords theme-color viewport";

/// Attributes of every element. Those that begin with `aria-` or `data-` are also permitted.
const ATTRIBUTES: &str = "align class dir hidden id lang role style title valign";

/// Attributes of certain elements.
const OWN_ATTRIBUTES: [(&str, &str); 13] = [
    ("a", "href"),
    ("col", "span"),
    ("colgroup", "span"),
    ("del", "datetime"),
    ("details", "open"),
    ("img", "alt decoding height loading src width"),
    ("ins", "datetime"),
    ("li", "value"),
    ("ol", "reversed start type"),
    ("style", "media"),
    ("td", "colspan rowspan headers"),
    ("th", "colspan rowspan headers scope"),
    ("time", "datetime"),
];

/// The kind of an attribute's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// Text that browsers do not interpret.
    Text,
    /// Style declarations.
    Style,
    /// The URL of a link.
    Link,
    /// The URL of an image.
    Image,
}

/// The treatment of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The element is kept.
    Written,
    /// The element is removed, and its content is kept.
    Unwrapped,
    /// The element is removed with its content.
    Hidden,
}

/// Returns the treatment of an element that has no part in the structure of a page.
pub(super) fn fate(element: &str) -> Fate {
    if has(WRITTEN, element) {
        Fate::Written
    } else if has(HIDDEN, element) {
        Fate::Hidden
    } else {
        Fate::Unwrapped
    }
}

/// Returns true if an element never has an end tag.
pub(super) fn is_void(element: &str) -> bool {
    has(VOID, element)
}

/// Returns true if an element needs no end tag when its parent ends.
pub(super) fn is_open_ended(element: &str) -> bool {
    has(OPEN_ENDED, element)
}

/// Returns true if `<meta>` may have this name.
pub(super) fn is_meta_name(name: &str) -> bool {
    has(META_NAMES, name)
}

/// Returns the kind of an attribute's value; `None` if the attribute is not permitted.
pub(super) fn attribute(element: &str, name: &str) -> Option<Value> {
    let own = OWN_ATTRIBUTES.iter().find(|(owner, _)| *owner == element);
    let is_own = own.is_some_and(|(_, names)| has(names, name));
    (is_own || has(ATTRIBUTES, name) || is_free(name)).then(|| kind(name))
}

/// Returns the kind of a permitted attribute's value.
fn kind(name: &str) -> Value {
    match name {
        "style" => Value::Style,
        "href" => Value::Link,
        "src" => Value::Image,
        _ => Value::Text,
    }
}

/// Returns true if a list of names has a name.
fn has(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}

/// Returns true for an attribute that only scripts and screen readers use.
fn is_free(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    ["aria-", "data-"].iter().any(|prefix| {
        name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_plain))
    })
}

#[cfg(test)]
mod tests {
    use super::{Fate, HIDDEN, VOID, Value, WRITTEN, attribute, fate, has};

    #[test]
    fn no_element_is_on_two_lists() {
        assert!(!WRITTEN.split(' ').any(|element| has(HIDDEN, element)));
        assert!(VOID.split(' ').all(|element| has(WRITTEN, element)));
        assert_eq!(fate("form"), Fate::Unwrapped);
    }

    #[test]
    fn handlers_and_urls_of_other_elements_are_not_permitted() {
        for (element, name) in [
            ("img", "onerror"),
            ("img", "srcset"),
            ("div", "href"),
            ("div", "src"),
            ("a", "ping"),
            ("a", "xlink:href"),
            ("a", "data-"),
            ("a", "data-\"x"),
            ("a", "is"),
        ] {
            assert_eq!(attribute(element, name), None, "{element} {name}");
        }
        assert_eq!(attribute("a", "href"), Some(Value::Link));
        assert_eq!(attribute("a", "data-origin-video-link"), Some(Value::Text));
    }
}
