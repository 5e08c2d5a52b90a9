//! Notes: an agent that keeps notes, and deletes them if a person approves.
//!
//! The graph (`graph.toml`) has the nodes of the plugin `std`. This crate has the tools of the
//! agent and the endpoints of the page.

use wattle_plugin::chat::{
    Chat, ChatError, ChatRequest, Reply, ThreadDocument, ThreadList, TitleRequest, Waiting,
};
use wattle_plugin::prelude::*;
use wattle_plugin::web::status;

const CHAT: Chat = Chat::graph("notes").title_chars(80);
const FAILED: (u16, &str) = (status::BAD_GATEWAY, "The model is not available.");

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

/// Deletes the note with a title.
#[tool(idempotent)]
fn delete_note(_context: &ToolContext, note: Title) -> Result<ToolOutput, Failure> {
    if memory::get(&["notes"], &note.title)?.is_none() {
        return Ok(ToolOutput::error("there is no note with this title"));
    }
    memory::delete(&["notes"], &note.title)?;
    Ok(ToolOutput::text("deleted"))
}

/// Sends a message and waits for the reply.
#[handler(POST, "/api/chat", body = ChatRequest, returns = Reply, returns(202) = Waiting,
    error = ChatError)]
fn chat(request: &Request) -> Result<Response, Failure> {
    CHAT.wait(&CHAT.send(request)?)?.respond(|_| FAILED)
}

/// Lists the conversations.
#[handler(GET, "/api/threads",
    query(limit: Option<u32>, after: Option<String>, text: Option<String>), returns = ThreadList)]
fn list(request: &Request) -> Result<Response, Failure> {
    Response::json(200, &CHAT.list(request)?)
}

/// Responds with the messages of a conversation.
#[handler(GET, "/api/threads/{id}", returns = ThreadDocument)]
fn show(request: &Request) -> Result<Response, Failure> {
    Response::json(200, &CHAT.show(&request.param::<String>("id")?)?)
}

/// Renames a conversation.
#[handler(PATCH, "/api/threads/{id}", body = TitleRequest, returns(204))]
fn rename(request: &Request) -> Result<Response, Failure> {
    CHAT.rename(&request.param::<String>("id")?, request)?;
    Ok(Response::empty(status::NO_CONTENT))
}

/// Deletes a conversation.
#[handler(DELETE, "/api/threads/{id}", returns(204))]
fn delete(request: &Request) -> Result<Response, Failure> {
    CHAT.delete(&request.param::<String>("id")?)?;
    Ok(Response::empty(status::NO_CONTENT))
}

/// Responds with the approvals that a conversation waits for.
#[handler(GET, "/api/threads/{id}/approvals", returns = Value)]
fn approvals(request: &Request) -> Result<Response, Failure> {
    let thread = runs::find("notes", &request.param::<String>("id")?)?;
    let pending = thread.into_iter().flat_map(|thread| thread.interrupts);
    let pending = pending.map(|asked| json!({ "id": asked.id, "payload": asked.payload }));
    Response::json(200, &pending.collect::<Vec<_>>())
}

#[derive(Deserialize, JsonSchema)]
struct Approval {
    id: String,
    approved: bool,
}

/// Answers an approval and waits for the reply.
#[handler(POST, "/api/threads/{id}/approvals", body = Approval, returns = Reply,
    returns(202) = Waiting, error = ChatError)]
fn approve(request: &Request) -> Result<Response, Failure> {
    let Approval { id, approved } = request.json()?;
    let decision = if approved { "approve" } else { "reject" };
    let resume = runs::Resume::thread(request.param::<String>("id")?)
        .answer_to(id, json!({ "decision": decision }));
    let run = resume.resume().map_err(|failure| failure.with_status(status::CONFLICT))?;
    CHAT.wait(&run)?.respond(|_| FAILED)
}

wattle_plugin::export! {
    tools: [add_note, delete_note],
    handlers: [chat, list, show, rename, delete, approvals, approve],
}
