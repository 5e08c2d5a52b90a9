//! One target a file. What a target checks stands at the top of its file; that the host neither
//! panics nor works for long holds for all of them.

pub mod app;
pub mod cel;
pub mod component;
pub mod events;
pub mod export;
pub mod frame;
pub mod graph;
pub mod mcp;
pub mod provider;
pub mod request;
pub mod schema;
pub mod sql;
pub mod state;
pub mod store;
pub mod stream;
pub mod wit;

/// The input as text in two parts: its first line, and what follows.
fn lines(bytes: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.split_once('\n').unwrap_or((text, "")))
}
