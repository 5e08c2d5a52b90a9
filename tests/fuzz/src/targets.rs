//! One target per file. The documentation of each file states its properties. Every target also
//! checks that the host neither panics nor hangs.

pub mod app;
pub mod blob;
pub mod cel;
pub mod component;
pub mod events;
pub mod export;
pub mod frame;
pub mod graph;
pub mod mcp;
pub mod native;
pub mod provider;
pub mod request;
pub mod schema;
pub mod sql;
pub mod state;
pub mod store;
pub mod stream;
pub mod url;
pub mod wit;

/// Splits a text input into its first line and the rest.
fn lines(bytes: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.split_once('\n').unwrap_or((text, "")))
}
