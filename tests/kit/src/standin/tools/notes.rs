//! The model for the application `notes`: it adds and deletes the notes that a message names, and
//! reports the result.

use serde_json::json;

use super::{Dialogue, Move};

/// The tool that adds a note.
const ADD: &str = "add_note";

/// The tool that deletes a note.
const DELETE: &str = "delete_note";

/// The response to a message that names no note.
const HELP: &str = "Say \"Note that the tea is in the kitchen\" or \"Delete the note: the tea\".";

/// Decides the next step in conversations with the tool [`DELETE`].
pub(super) fn decide(dialogue: &Dialogue<'_>) -> Option<Move> {
    if !dialogue.offers(DELETE) {
        return None;
    }
    if let Some(call) = dialogue.rounds.iter().flatten().next_back() {
        return Some(Move::Say(format!("{}: {}", call.ask.name, call.answer)));
    }
    let message = dialogue.user.trim().trim_end_matches('.');
    let (tool, arguments) = if let Some(text) = message.strip_prefix("Note that ") {
        let title = text.split(" is ").next().unwrap_or(text);
        (ADD, json!({ "title": title, "text": text }))
    } else if let Some(title) = message.strip_prefix("Delete the note: ") {
        (DELETE, json!({ "title": title }))
    } else {
        return Some(Move::Say(HELP.to_owned()));
    };
    Some(Move::Call(vec![(tool.to_owned(), arguments.to_string())]))
}
