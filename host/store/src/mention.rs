//! A look at a record's JSON before it is written: which blobs it mentions, and how deep it nests.

use memchr::memchr2;
use wattle_run::ports::blob::BlobRef;

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Sight {
    /// Deepest nesting of objects and arrays.
    pub(crate) depth: usize,
    /// All blobs whose reference stands in a text.
    pub(crate) blobs: Vec<BlobRef>,
}

/// Looks through JSON text that `serde_json` wrote: it escapes no character of a blob reference,
/// so every one stands there as it is.
pub(crate) fn look(json: &[u8]) -> Sight {
    let mut sight = Sight::default();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let end = text_end(json, at);
                BlobRef::find_in(&json[at..end], &mut sight.blobs);
                at = end + 1;
            }
            b'{' | b'[' => {
                depth += 1;
                sight.depth = sight.depth.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    sight
}

/// Where the text that starts at `at` ends: the position of its closing quote.
fn text_end(json: &[u8], mut at: usize) -> usize {
    while let Some(next) = json.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += next;
        if json[at] == b'"' {
            return at;
        }
        // Whatever is escaped, a quote as well.
        at += 2;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use wattle_graph::id::Digest;

    use super::*;

    fn check(json: &str, depth: usize, blobs: &[BlobRef]) {
        let sight = look(json.as_bytes());
        assert_eq!(sight.depth, depth, "{json}");
        assert_eq!(sight.blobs, blobs, "{json}");
    }

    #[test]
    fn nesting_is_counted_outside_of_texts() {
        check("1", 0, &[]);
        check(r#"{"a":[1,[2]],"b":{}}"#, 3, &[]);
        check(r#"["[[[[", "\\", "\"{{{"]"#, 1, &[]);
        check(r#""never closed"#, 0, &[]);
    }

    #[test]
    fn blobs_are_found_in_texts() {
        let (a, b) = (BlobRef(Digest::of(b"a")), BlobRef(Digest::of(b"b")));
        check(&format!(r#"{{"image":"{a}","{b}":1}}"#), 1, &[a, b]);
        check(&format!(r#"["see ![x]({a}) and:{b}."]"#), 1, &[a, b]);
        check(r#"["blob:", "blob:123", ":::", "blob:zz"]"#, 1, &[]);
    }
}
