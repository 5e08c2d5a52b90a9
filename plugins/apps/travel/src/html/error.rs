//! The reasons why a text is not a page.

use std::fmt;

/// Maximum size of a page in bytes. Text and styles take far less; a larger page has embedded data.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// The reason why a text is not a page. Models read it to correct the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HtmlError {
    /// More than [`MAX_BYTES`].
    TooLong(usize),
    /// Too deeply nested elements.
    TooDeep,
    /// No `<html>`.
    NoHtml,
    /// No `<body>`.
    NoBody,
    /// The parser failed.
    Unreadable(String),
}

impl fmt::Display for HtmlError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(bytes) => write!(
                formatter,
                "the page has {bytes} bytes, {MAX_BYTES} are allowed; refer to pictures by their \
                 addresses instead of embedding them"
            ),
            Self::TooDeep => formatter.write_str(
                "the page has too many elements inside of each other; close what is opened",
            ),
            Self::NoHtml => formatter.write_str(
                "the page has no `<html>` tag; write one complete HTML document and nothing else",
            ),
            Self::NoBody => formatter.write_str(
                "the page has no `<body>` tag; write one complete HTML document and nothing else",
            ),
            Self::Unreadable(reason) => write!(formatter, "the page cannot be read: {reason}"),
        }
    }
}

impl std::error::Error for HtmlError {}
