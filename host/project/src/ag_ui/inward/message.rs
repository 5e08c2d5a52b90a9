//! Conversion of one message of a client to a message of a channel.
//!
//! The blocks of Agent Server messages are the intermediate form of the content. Images and files
//! of both protocols therefore have the same form in the state.

use serde_json::{Map, Value, json};

use crate::agent_server::message::{ParseText, ReadContext, from_wire};

/// The role of a message of AG-UI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    User,
    System,
    Developer,
    Assistant,
    Tool,
    Reasoning,
    Activity,
}

/// All roles by name.
const ROLES: &[(&str, Role)] = &[
    ("user", Role::User),
    ("system", Role::System),
    ("developer", Role::Developer),
    ("assistant", Role::Assistant),
    ("tool", Role::Tool),
    ("reasoning", Role::Reasoning),
    ("activity", Role::Activity),
];

/// The fields of a message that decide whether it is new.
pub(super) struct Envelope<'m> {
    pub(super) id: &'m str,
    pub(super) role: Role,
    pub(super) tool_call_id: Option<&'m str>,
    role_name: &'m str,
    fields: &'m Map<String, Value>,
}

impl<'m> Envelope<'m> {
    /// Reads the envelope of a message.
    pub(super) fn of(message: &'m Value) -> Result<Self, String> {
        let fields = message.as_object().ok_or("a message must be an object")?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str);
        let id = text("id").filter(|id| !id.is_empty());
        let id = id.ok_or("a message needs an `id`, which is a string and not empty")?;
        let role_name = text("role").ok_or("a message needs a `role`")?;
        let known = ROLES.iter().find(|(name, _)| *name == role_name);
        let role = known.map(|(_, role)| *role).ok_or_else(|| {
            let names: Vec<String> = ROLES.iter().map(|(name, _)| format!("`{name}`")).collect();
            format!("`{role_name:.40}` is not a role; use one of {}", names.join(", "))
        })?;
        Ok(Self { id, role, tool_call_id: text("toolCallId"), role_name, fields })
    }

    /// Converts the message. For a tool message, `tool` is the name of the called tool, if known.
    /// `parse` parses the arguments of tool calls.
    pub(super) fn convert(
        &self,
        tool: Option<String>,
        parse: ParseText<'_>,
    ) -> Result<Value, String> {
        let mut message = json!({ "id": self.id, "role": self.role_name });
        message["content"] = match self.fields.get("content") {
            None | Some(Value::Null) if self.role == Role::Assistant => "".into(),
            None | Some(Value::Null) => return Err("a message needs `content`".to_owned()),
            Some(Value::Array(parts)) => blocks(parts)?,
            Some(content) => content.clone(),
        };
        match self.role {
            Role::Tool => self.set_result(tool, &mut message)?,
            Role::Assistant => {
                if let Some(calls) = self.fields.get("toolCalls") {
                    message["tool_calls"] = calls.clone();
                }
            }
            _ => {}
        }
        if let Some(name) = self.fields.get("name").filter(|name| name.is_string()) {
            message["name"] = name.clone();
        }
        // [`Self::of`] rejects a message without an id, so `from_wire` generates none.
        from_wire(&message, &mut ReadContext { new_id: &mut String::new, parse })
    }

    fn set_result(&self, tool: Option<String>, message: &mut Value) -> Result<(), String> {
        let call = self.tool_call_id.ok_or("a message of role `tool` needs `toolCallId`")?;
        message["tool_call_id"] = call.into();
        if let Some(tool) = tool {
            message["name"] = tool.into();
        }
        if let Some(error) = self.fields.get("error").and_then(Value::as_str) {
            message["status"] = "error".into();
            if message["content"] == "" {
                message["content"] = error.into();
            }
        }
        Ok(())
    }
}

/// Converts the parts of a message to blocks. Returns an empty string if no part has a known type.
fn blocks(parts: &[Value]) -> Result<Value, String> {
    let mut blocks = Vec::with_capacity(parts.len());
    for (position, part) in parts.iter().enumerate() {
        blocks.extend(block(part).map_err(|why| format!("part {position} of `content`: {why}"))?);
    }
    Ok(if blocks.is_empty() { "".into() } else { blocks.into() })
}

/// Converts a part. Returns `None` if the type of the part is unknown: AG-UI requires that servers
/// ignore parts of later versions.
fn block(part: &Value) -> Result<Option<Value>, String> {
    let kind = part.get("type").and_then(Value::as_str).ok_or("a part needs a `type`")?;
    match kind {
        "text" => {
            let text = part.get("text").and_then(Value::as_str).ok_or("the part has no `text`")?;
            Ok(Some(json!({ "type": "text", "text": text })))
        }
        "image" | "audio" | "video" => file(kind, part),
        "document" => file("file", part),
        _ => Ok(None),
    }
}

/// Converts a part with a file to a block of type `kind`.
fn file(kind: &str, part: &Value) -> Result<Option<Value>, String> {
    let source = part.get("source").ok_or("the part has no `source`")?;
    let text = |name: &str| source.get(name).and_then(Value::as_str);
    let place = match text("type").ok_or("`source` has no `type`")? {
        "data" => "base64",
        "url" => "url",
        "file" => "file_id",
        _ => return Ok(None),
    };
    let value = text("value").ok_or("`source` has no `value`")?;
    let mut block = json!({ "type": kind, place: value });
    if let Some(media_type) = text("mimeType") {
        block["mime_type"] = media_type.into();
    }
    Ok(Some(block))
}
