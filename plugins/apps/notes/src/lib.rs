//! Notes: an agent that keeps notes, and deletes them if a person approves.

use wattle_plugin::chat::Chat;
use wattle_plugin::prelude::*;

const CHAT: Chat = Chat::graph("notes").title_chars(80);
wattle_plugin::chat_endpoints!(CHAT, "/api");

#[derive(Deserialize, JsonSchema)]
struct Note {
    title: String,
    text: String,
}

/// Adds a note. Replaces a note with the same title.
#[tool(idempotent)]
fn add_note(_context: &ToolContext, note: Note) -> Result<ToolOutput, Failure> {
    memory::put(&["notes"], &note.title, json!({ "text": note.text }))?;
    Ok(ToolOutput::text("added"))
}

#[derive(Deserialize, JsonSchema)]
struct Title {
    title: String,
}

/// Deletes the note with a title, if there is one.
#[tool(idempotent)]
fn delete_note(_context: &ToolContext, note: Title) -> Result<ToolOutput, Failure> {
    memory::delete(&["notes"], &note.title)?;
    Ok(ToolOutput::text("deleted"))
}

wattle_plugin::export! {
    tools: [add_note, delete_note],
    handlers: [send, stream, list, show, rename, delete, join, cancel, answer],
}
