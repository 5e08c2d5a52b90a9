//! Checks that a page is harmless, without any part of the code that made it: every `<` must begin
//! a known tag, written in the one way in which pages are written.

/// Elements that load, run, or change how the rest is read.
const BAD_ELEMENTS: &str = "applet audio base button embed form frame frameset iframe input link \
    math noembed noframes noscript object plaintext script select svg template textarea video xmp";

/// Prefixes of URLs that a page may have.
const ADDRESSES: [&str; 8] =
    ["https://", "http://", "mailto:", "tel:", "#", "/blobs/", "data:image/", "https&amp;"];

/// Panics with the piece that is not harmless.
pub(super) fn assert_harmless(page: &str) {
    let rest = page.strip_prefix("<!DOCTYPE html>\n").expect("a doctype");
    let head = "\n<head>\n<meta charset=\"utf-8\">\n";
    assert!(rest.find(head).is_some_and(|at| !rest[..at].contains('\n')), "{page}");
    assert!(!page.contains('\0'), "{page}");
    for (at, _) in rest.match_indices('<') {
        let tag = &rest[at + 1..];
        if tag.starts_with([' ', '=']) && is_in_style(&rest[..at]) {
            continue;
        }
        assert!(is_tag(tag), "{tag}\n--- in ---\n{page}");
    }
}

/// Returns true inside of a style, where a comparison has a sign that begins no tag.
fn is_in_style(before: &str) -> bool {
    before.rfind("<style").is_some_and(|at| !before[at..].contains("</style>"))
}

fn is_tag(text: &str) -> bool {
    let Some(end) = text.find('>') else { return false };
    let tag = &text[..end];
    if let Some(name) = tag.strip_prefix('/') {
        return is_name(name);
    }
    let (name, mut attributes) = tag.split_at(tag.find(' ').unwrap_or(tag.len()));
    while let Some(rest) = attributes.strip_prefix(' ') {
        let Some((attribute, value)) = rest.split_once("=\"") else { return false };
        let Some((value, rest)) = value.split_once('"') else { return false };
        if !is_attribute(attribute, value) {
            return false;
        }
        attributes = rest;
    }
    is_name(name) && attributes.is_empty()
}

fn is_name(name: &str) -> bool {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_bad = BAD_ELEMENTS.split(' ').any(|bad| bad == name);
    is_plain && name.starts_with(|c: char| c.is_ascii_lowercase()) && !is_bad
}

fn is_attribute(name: &str, value: &str) -> bool {
    let is_plain =
        name.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_0123456789".contains(&byte));
    let is_known = !name.starts_with("on")
        && !["srcdoc", "srcset", "action", "formaction", "http-equiv", "ping", "background"]
            .contains(&name);
    let is_address = ADDRESSES.iter().any(|start| value.to_ascii_lowercase().starts_with(start));
    let is_addressed = !matches!(name, "href" | "src") || is_address;
    is_plain && is_known && is_addressed && !value.contains(['<', '>'])
}
