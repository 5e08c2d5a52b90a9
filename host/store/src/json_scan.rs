//! A scan of a record's JSON before it is written: the blobs that it mentions, and its nesting
//! depth.

use memchr::{memchr2, memchr2_iter};
use wattle_run::ports::blob::BlobRef;

/// The result of a scan.
#[derive(Debug, Default)]
pub(crate) struct JsonScan {
    /// Deepest nesting of objects and arrays.
    pub(crate) depth: usize,
    /// Blobs that occur in strings, in order.
    pub(crate) blobs: Vec<BlobRef>,
}

/// Returns whether a scan of JSON that `serde_json` wrote would find no blob and no nesting deeper
/// than `max_depth`, because the JSON has no more brackets than that. Most records are so short.
/// A scan takes several times as long, since it looks for the end of each string.
pub(crate) fn needs_no_scan(json: &[u8], max_depth: usize) -> bool {
    memchr2_iter(b'[', b'{', json).nth(max_depth).is_none() && !BlobRef::may_be_in(json)
}

/// Scans JSON that `serde_json` wrote. It escapes no character of a blob reference, so each
/// reference occurs verbatim.
pub(crate) fn scan_json(json: &[u8]) -> JsonScan {
    let mut scan = JsonScan::default();
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let end = string_end(json, at);
                BlobRef::find_in(&json[at..end], &mut scan.blobs);
                at = end + 1;
            }
            b'{' | b'[' => {
                depth += 1;
                scan.depth = scan.depth.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    scan
}

/// Returns the position of the closing quote of the string that starts at `at`, or the length of
/// the JSON if the string is not closed.
fn string_end(json: &[u8], mut at: usize) -> usize {
    while let Some(next) = json.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += next;
        if json[at] == b'"' {
            return at;
        }
        // Skips the escaped character, which may be a quote.
        at += 2;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use wattle_graph::id::Digest;

    use super::*;

    fn check(json: &str, depth: usize, blobs: &[BlobRef]) {
        let scan = scan_json(json.as_bytes());
        assert_eq!(scan.depth, depth, "{json}");
        assert_eq!(scan.blobs, blobs, "{json}");
        for max_depth in 0..5 {
            if needs_no_scan(json.as_bytes(), max_depth) {
                assert!(blobs.is_empty() && depth <= max_depth, "{json}");
            }
        }
    }

    #[test]
    fn json_with_few_brackets_and_no_blob_needs_no_scan() {
        let json = br#"{"a":[1,{}],"b":"[blo"}"#;
        assert!(needs_no_scan(json, 4));
        assert!(!needs_no_scan(json, 3), "a bracket in a string counts");
        assert!(!needs_no_scan(br#"["blob:"]"#, 4));
    }

    #[test]
    fn brackets_in_strings_are_not_nesting() {
        check("1", 0, &[]);
        check(r#"{"a":[1,[2]],"b":{}}"#, 3, &[]);
        check(r#"["[[[[", "\\", "\"{{{"]"#, 1, &[]);
        check(r#""never closed"#, 0, &[]);
    }

    #[test]
    fn blobs_are_found_in_strings() {
        let (a, b) = (BlobRef(Digest::of(b"a")), BlobRef(Digest::of(b"b")));
        check(&format!(r#"{{"image":"{a}","{b}":1}}"#), 1, &[a, b]);
        check(&format!(r#"["see ![x]({a}) and:{b}."]"#), 1, &[a, b]);
        check(r#"["blob:", "blob:123", ":::", "blob:zz"]"#, 1, &[]);
    }
}
