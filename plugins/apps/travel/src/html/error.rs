//! The reasons why a text is not a page.

/// Maximum size of a page in bytes. Text and styles take far less; a larger page has embedded data.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// The reason why a text is not a page. Models read it to correct the page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HtmlError {
    #[error(
        "the page has {0} bytes, {max} are allowed; refer to pictures by their addresses instead \
         of embedding them",
        max = MAX_BYTES
    )]
    TooLong(usize),
    #[error("the page has too many elements inside of each other; close what is opened")]
    TooDeep,
    #[error("the page has no `<html>` tag; write one complete HTML document and nothing else")]
    NoHtml,
    #[error("the page has no `<body>` tag; write one complete HTML document and nothing else")]
    NoBody,
    #[error("the page cannot be read: {0}")]
    Unreadable(String),
}
