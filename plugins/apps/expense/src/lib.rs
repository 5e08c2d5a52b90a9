//! Expenses: an agent that books expenses and income from a conversation.
//!
//! The graph (`graph.toml`) has nodes of the plugin `std` and tools of the plugins `date` and
//! `lark`. This crate has only the endpoints of the app.
//!
//! # Layout
//!
//! * `web`: the endpoints, one path per file, and the texts of the conversation.
//! * `book`: the bookings of a month, with sums.

mod book;
#[cfg(test)]
mod prompt;
mod web;

wattle_plugin::export! {
    handlers: [
        web::bookings::bookings,
        web::chat::chat,
        web::stream::stream,
        web::thread::resume,
        web::thread::thread,
    ],
}
