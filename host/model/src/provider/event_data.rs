//! Data of events that is not one JSON document.

use wattle_run::json::lenient;

/// The data of the last event of a stream.
pub(super) const DONE_MARKER: &str = "[DONE]";

/// Returns whether a line of data is meant as a JSON object or array. Other data is no part of a
/// response, such as the word `ping` of a gateway that keeps the connection alive.
pub(super) fn has_document(data: &str) -> bool {
    data.lines().any(|line| line.trim_start().starts_with(['{', '[']))
}

/// Returns the lines of data in which each line is the data of an event. The empty line between the
/// events is missing. Returns `None` for a document of several lines.
pub(super) fn separate_lines(data: &str) -> Option<Vec<&str>> {
    let lines: Vec<&str> = data.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_whole =
        |line: &&str| *line == DONE_MARKER || !has_document(line) || lenient::parse(line).is_ok();
    (lines.len() > 1 && lines.iter().all(is_whole)).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_without_an_empty_line_between_them_are_separated() {
        for (data, lines) in [
            ("{\"a\":1}\n{\"b\":2}", Some(vec!["{\"a\":1}", "{\"b\":2}"])),
            ("{\"a\":1}\n\n [DONE]", Some(vec!["{\"a\":1}", "[DONE]"])),
            ("ping\n{\"a\":1}", Some(vec!["ping", "{\"a\":1}"])),
            ("{\"a\":1}", None),
            ("{\n\"a\": oops\n}", None),
            ("{\"a\":1}\n{\"b\":", None),
            ("ping", None),
        ] {
            assert_eq!(separate_lines(data), lines, "{data}");
        }
    }

    #[test]
    fn documents_begin_with_a_bracket() {
        assert!(["{\"a\":", "[1]", "ping\n {\"a\":"].into_iter().all(has_document));
        assert!(!["ping", "\"ping\"", "OK\nOK", "<html>"].into_iter().any(has_document));
    }
}
