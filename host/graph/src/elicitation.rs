//! What the server of a tool wants to know of a person in the middle of a call, as the event log has it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::Digest;

/// What a server wants to know before its call goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elicitation {
    /// The questions, by the names that the server gave them; at least one.
    pub questions: BTreeMap<String, ElicitedQuestion>,
    /// What the server wants back with the answers, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Names the call among those that the server holds open until there is an answer. Without it the server
    /// has ended its side, and the call is made again with the answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

/// One question of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ElicitedQuestion {
    /// What a person reads.
    pub message: String,
    /// JSON Schema of what a person gives.
    pub schema: Value,
}

/// A round of questions in the middle of a call: what the call needs to go on. No client sees it, since the
/// state is the server's own and may be a secret of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Elicited {
    /// Which round of the call it is, from 0.
    pub round: u32,
    /// Digest of the request of the call.
    pub digest: Digest,
    /// The server that asks.
    pub server: String,
    /// Its tool, by the name that it has there.
    pub tool: String,
    /// The name of the host that the server holds the call open for, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What it wants to know.
    pub asked: Elicitation,
}
