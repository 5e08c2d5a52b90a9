//! Notes: an agent that keeps notes, and deletes them if a person approves.

use wattle_plugin::chat::Chat;
use wattle_plugin::prelude::*;

const CHAT: Chat = Chat::graph("notes").title_chars(80);
wattle_plugin::chat_endpoints!(CHAT, "/api");

/// Adds a note. Replaces a note with the same title.
#[tool(idempotent)]
fn add_note(title: String, text: String) -> Result<ToolOutput, Failure> {
    memory::put(&["notes"], &title, json!({ "text": text }))?;
    Ok(ToolOutput::text("added"))
}

/// Deletes the note with a title.
#[tool(idempotent)]
fn delete_note(title: String) -> Result<ToolOutput, Failure> {
    if memory::get(&["notes"], &title)?.is_none() {
        return Ok(ToolOutput::error("there is no note with this title"));
    }
    memory::delete(&["notes"], &title)?;
    Ok(ToolOutput::text("deleted"))
}

/// Lists the newest notes, at most 100.
#[tool(read_only)]
fn list_notes() -> Result<ToolOutput, Failure> {
    let notes = memory::Search::under(&["notes"]).limit(100).run()?.into_iter();
    let notes: Vec<Value> =
        notes.map(|note| json!({ "title": note.key, "text": note.value["text"] })).collect();
    ToolOutput::json(&json!({ "notes": notes }))
}

wattle_plugin::export! {
    tools: [add_note, delete_note, list_notes],
    // `chat_endpoints!` declares them.
    handlers: [send, stream, list, show, rename, delete, join, cancel, answer],
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::*;
    use wattle_plugin::testing::{FakeHost, call_tool};

    use super::{add_note, delete_note, list_notes};

    #[test]
    fn notes_are_added_listed_and_deleted() {
        let context = ToolContext::default();
        let title = json!({ "title": "tea" });
        FakeHost::new().run(|| {
            let missing = call_tool::<delete_note>(&context, &title).unwrap();
            assert!(missing.is_error, "{missing:?}");
            let note = json!({ "title": "tea", "text": "in the kitchen" });
            assert!(!call_tool::<add_note>(&context, &note).unwrap().is_error);
            let listed = call_tool::<list_notes>(&context, &json!({})).unwrap();
            assert_eq!(listed.structured, Some(json!({ "notes": [note] })));
            assert!(!call_tool::<delete_note>(&context, &title).unwrap().is_error);
            let listed = call_tool::<list_notes>(&context, &json!({})).unwrap();
            assert_eq!(listed.structured, Some(json!({ "notes": [] })));
        });
    }
}
