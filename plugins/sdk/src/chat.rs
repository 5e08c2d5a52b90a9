//! Conversations: threads whose channel has the reducer `messages`, as the plugin `std` writes them.

mod stored;
pub mod ui;
