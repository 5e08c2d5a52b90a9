//! The items that most plugins need: `use wattle_plugin::prelude::*;`.

pub use schemars::JsonSchema;
pub use serde::{Deserialize, Serialize};
pub use serde_json::{Value, json};

pub use crate::blob::BlobRef;
pub use crate::failure::{Failure, code};
pub use crate::json::{Empty, Extra};
pub use crate::llm::Completion;
pub use crate::message::{Image, Message, Part, Role};
pub use crate::node::{ChannelRef, Context, END, NodeError, Outcome, Reads};
pub use crate::tool::{ToolContext, ToolOutput, Unchecked};
pub use crate::web::{Request, Response, StreamFormat};
pub use crate::{
    blob, clock, emit, handler, http, interrupt, llm, log, memory, node, params, prompt, random,
    reducer, runs, settings, sql, tenants, tool, tools, web,
};
