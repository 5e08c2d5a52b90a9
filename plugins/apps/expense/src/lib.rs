//! Expenses: a conversation that books expenses and income.
//!
//! The conversation is a graph of ready nodes (see `graph.toml`) with two tools of other plugins.
//! What is here are the endpoints of the app.
//!
//! # Layout
//!
//! * `web`: the endpoints, one a file, and what they share.
//! * `talk`: what a conversation in the state says: the reply, and the steps to it.
//! * `shown`: a conversation as messages of a page.
//! * `book`: the bookings of a month, with sums.

mod book;
#[cfg(test)]
mod prompt;
mod shown;
mod talk;
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

/// Name of the graph in `graph.toml`.
const GRAPH: &str = "expense";

/// The channel with the conversation.
const MESSAGES: &str = "messages";
