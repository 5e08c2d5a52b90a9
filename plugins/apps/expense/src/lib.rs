//! Expenses: an agent that books expenses and income from a conversation.
//!
//! The graph (`graph.toml`) has nodes of the plugin `std` and tools of the plugins `date` and
//! `lark`. This crate has only the endpoints of the app.
//!
//! # Layout
//!
//! * `web`: the texts of the conversation, and the app's own endpoints, one path per file.
//!   `chat_endpoints!` declares the other ones.
//! * `calendar`: a month in the app's time zone; `book`: its bookings, with sums.
//! * `prompt`: tests of the agent's prompt.

mod book;
mod calendar;
#[cfg(test)]
mod prompt;
mod web;

use crate::web::CHAT;

wattle_plugin::chat_endpoints!(CHAT, "/api");

wattle_plugin::export! {
    handlers: [
        web::bookings::bookings,
        // In place of `send`: it has a text for each kind of failed run.
        web::chat::chat,
        // `chat_endpoints!` declares them.
        stream,
        show,
        join,
    ],
}
