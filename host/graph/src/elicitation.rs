//! Elicitations: questions that an MCP server asks a person in the middle of a tool call, in the
//! form of the event log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::Digest;

/// The questions that a server asks before it continues a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elicitation {
    /// The questions, by the names that the server gave them; there is at least one question.
    pub questions: BTreeMap<String, ElicitedQuestion>,
    /// Opaque state that the server expects in the next request, together with the answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Name of the held call, which the server keeps open until the answers arrive. `None` if the
    /// server has ended the call; the host then makes the call again with the answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

/// One question of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ElicitedQuestion {
    /// Text for the person.
    pub message: String,
    /// JSON Schema of the answer.
    pub schema: Value,
}

/// One elicitation round of a tool call, with the data that the host needs to continue the call.
/// Clients do not see it, because the state can be a secret of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elicited {
    /// Number of the round in the call, from 0.
    pub round: u32,
    /// Digest of the request of the call.
    pub digest: Digest,
    /// Name of the server that asks.
    pub server: String,
    /// Name of the tool on the server.
    pub tool: String,
    /// Name of the host for which the server holds the call open; `None` for a call that the server
    /// does not hold open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The questions of the round.
    #[serde(rename = "asked")]
    pub elicitation: Elicitation,
}
