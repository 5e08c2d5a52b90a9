//! Formats values for people: times, durations, sizes and statuses.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use wattle_api::document::run::FailureDocument;
use wattle_run::text::Escaped;

use crate::config::ByteSize;

/// Formats a time in the time zone of the machine.
pub(super) fn local_time(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(
        |_| ms.to_string(),
        |time| time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// Formats a duration in microseconds with a suitable unit.
pub(super) fn duration(us: u64) -> String {
    let us = us as f64;
    match us {
        us if us < 1e3 => format!("{us:.0}us"),
        us if us < 1e6 => format!("{:.1}ms", us / 1e3),
        us if us < 60e6 => format!("{:.1}s", us / 1e6),
        us => format!("{:.1}min", us / 60e6),
    }
}

/// Formats a size in bytes.
pub(super) fn byte_size(bytes: usize) -> String {
    ByteSize(bytes as u64).to_string()
}

/// Returns the string to which an enum value serializes.
pub(super) fn serde_name(value: &impl Serialize) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}

/// Indents every line.
pub(super) fn indent(text: &str, spaces: usize) -> String {
    let margin = " ".repeat(spaces);
    text.lines().map(|line| format!("{margin}{line}")).collect::<Vec<_>>().join("\n")
}

/// Returns the first sentence of a description, on one line.
///
/// Descriptions come from doc comments and MCP servers and may break lines anywhere. If no sentence
/// ends in the first paragraph, the summary is the whole paragraph. A period that a lower-case
/// letter follows, as in "e.g. a date", does not end a sentence.
pub(super) fn first_sentence(description: &str) -> String {
    let paragraph = description.trim().lines().take_while(|line| !line.trim().is_empty());
    let text = paragraph.map(str::trim).collect::<Vec<_>>().join(" ");
    let end = text
        .match_indices(". ")
        .map(|(at, _)| at + 1)
        .find(|end| starts_sentence(&text[end + 1..]));
    let full_stop = text.find('。').map(|at| at + '。'.len_utf8());
    let length = end.into_iter().chain(full_stop).min().unwrap_or(text.len());
    text[..length].to_owned()
}

/// Returns whether a text that follows a period and a space can be the start of a sentence.
fn starts_sentence(text: &str) -> bool {
    !text.starts_with(|first: char| first.is_lowercase())
}

/// Formats a failure on one line. A guest chooses its code and its message, and a line break in
/// them could begin a line that looks like one of the command.
pub(super) fn failure(failure: &FailureDocument) -> String {
    Escaped(format_args!("{}: {}", failure.code, failure.message)).to_string()
}

/// Quotes an argument for a shell. Control characters are escaped, because the command is shown.
pub(super) fn shell_quote(text: &str) -> String {
    let text = Escaped(text).to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_suitable_unit() {
        assert_eq!(duration(5), "5us");
        assert_eq!(duration(1_500), "1.5ms");
        assert_eq!(duration(2_000_000), "2.0s");
        assert_eq!(duration(90_000_000), "1.5min");
    }

    #[test]
    fn summary_is_the_first_sentence() {
        assert_eq!(first_sentence("Sets the date. Then more."), "Sets the date.");
        assert_eq!(
            first_sentence("Sets the date on trades\n without one. More"),
            "Sets the date on trades without one."
        );
        assert_eq!(
            first_sentence("Takes a date, e.g. a Monday, i.e. a day. Then more."),
            "Takes a date, e.g. a Monday, i.e. a day."
        );
        assert_eq!(first_sentence("Reads a page. `url` is its address."), "Reads a page.");
        assert_eq!(first_sentence("\nNo sentence\n\nSecond paragraph."), "No sentence");
        assert_eq!(first_sentence("读取记录，最新的在前。支持日期。"), "读取记录，最新的在前。");
        assert_eq!(first_sentence(""), "");
    }

    #[test]
    fn shell_arguments_are_quoted() {
        assert_eq!(shell_quote("0192-ab"), "0192-ab");
        assert_eq!(shell_quote("it's"), r"'it'\''s'");
        assert_eq!(shell_quote("a\nb"), r"'a\nb'");
    }
}
