//! Normalizes messages of servers part by part.
//!
//! `rmcp` parses a message as a whole, so one invalid tool would discard a tool list, and one
//! invalid content block the result of a completed call. This module works on plain JSON before
//! that. It corrects unambiguous deviations, omits parts that cannot be parsed, and keeps the
//! others. Each kind of deviation is logged once per server.

mod field;
mod form;
mod names;
mod unparsable;

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ContentBlock, Implementation, ResourceContents, ServerCapabilities, Tool, ToolAnnotations,
};
use serde_json::{Map, Value, json};
use wattle_run::json::bounded::JsonError;
use wattle_run::json::lenient;

use self::unparsable::drop_unparsable_fields;
use crate::check::NOTES_TARGET;
use crate::sanitizer::{Sanitizer, one_line};

/// Maximum notes about one server. Later notes are dropped; a server may deviate without end.
const MAX_NOTES: usize = 1000;

/// Fields by which the result of a call is recognized.
const CALL_RESULT_FIELDS: [&str; 3] = ["content", "structuredContent", "isError"];

/// Media type of content that names none.
const DEFAULT_MEDIA_TYPE: &str = "application/octet-stream";

/// Normalizes messages of one server and notes corrected and omitted parts. Clones share the notes.
#[derive(Clone, Debug)]
pub(crate) struct Normalizer {
    sanitizer: Sanitizer,
    notes: Arc<Mutex<Vec<String>>>,
}

impl Normalizer {
    pub(crate) fn new(sanitizer: impl Into<Sanitizer>) -> Self {
        Self { sanitizer: sanitizer.into(), notes: Arc::default() }
    }

    pub(crate) fn sanitizer(&self) -> &Sanitizer {
        &self.sanitizer
    }

    /// Parses a message of the server. Numbers outside of JSON, such as `NaN`, become `null`.
    ///
    /// # Errors
    ///
    /// Returns an error if the message is not JSON in another respect, or exceeds a limit.
    pub(crate) fn parse(&self, bytes: &[u8]) -> Result<Value, JsonError> {
        let (read, is_replaced) = lenient::parse_message(bytes)?;
        if is_replaced {
            self.note("a number that JSON cannot represent is read as `null`");
        }
        Ok(lenient::join_surrogates_in(read))
    }

    /// Normalizes a message, and redacts the secrets of the server in it.
    pub(crate) fn normalize(&self, message: &mut Value) {
        if self.sanitizer.has_secrets() {
            self.redact(message);
        }
        let Some(message) = message.as_object_mut() else { return };
        if ["method", "result", "error"].iter().any(|field| message.contains_key(*field)) {
            message.insert("jsonrpc".into(), "2.0".into());
        }
        // A response of JSON-RPC 1.0 has both fields, one of which is null.
        for (said, other) in [("result", "error"), ("error", "result")] {
            if message.contains_key(said) && message.get(other).is_some_and(Value::is_null) {
                message.remove(other);
            }
        }
        if !message.contains_key("method")
            && let Some(id) = message.get_mut("id")
        {
            normalize_response_id(id);
        }
        if let Some(Value::Object(result)) = message.get_mut("result") {
            self.normalize_result(result);
        }
        if let Some(error) = message.get_mut("error").filter(|error| !error.is_null()) {
            normalize_error(error);
        }
        form::normalize_form(self, message);
    }

    fn redact(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(erased) = self.sanitizer.redact_secrets(text) {
                    *text = erased;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.redact(field)),
            _ => {}
        }
    }

    fn normalize_result(&self, result: &mut Map<String, Value>) {
        names::rename_in_result(result);
        field::drop_unreadable_fields(result);
        if let Some(tools) = result.get_mut("tools") {
            let listed = std::mem::take(as_array(tools));
            *tools = listed.into_iter().filter_map(|tool| self.normalize_tool(tool)).collect();
        }
        if let Some(Value::Object(requests)) = result.get_mut("inputRequests") {
            for request in requests.values_mut().filter_map(Value::as_object_mut) {
                form::normalize_form(self, request);
            }
        }
        let is_of_call = CALL_RESULT_FIELDS.iter().any(|name| result.contains_key(*name));
        if !is_of_call && result.get("protocolVersion").is_some_and(Value::is_string) {
            self.normalize_handshake(result);
        }
        if is_of_call {
            self.normalize_call_result(result);
        }
    }

    /// Normalizes a result of a call. Fields that the protocol does not define become a text block.
    fn normalize_call_result(&self, result: &mut Map<String, Value>) {
        if let Some(content) = result.get_mut("content") {
            let said = std::mem::take(as_array(content));
            *content = said.into_iter().filter_map(|block| self.normalize_block(block)).collect();
        }
        match result.get("isError") {
            Some(Value::String(text)) => {
                let is_error = text.eq_ignore_ascii_case("true");
                result.insert("isError".into(), is_error.into());
            }
            Some(Value::Number(number)) => {
                // The client of the Python SDK also reads a number other than 0 as true.
                let is_error = number.as_f64().is_some_and(|number| number.abs() > 0.0);
                result.insert("isError".into(), is_error.into());
            }
            Some(Value::Bool(_)) | None => {}
            Some(_) => drop(result.remove("isError")),
        }
        if result.contains_key("content") || result.contains_key("structuredContent") {
            return;
        }
        let is_other = |name: &str| !["isError", "resultType", "_meta"].contains(&name);
        let other = result.iter().filter(|(name, _)| is_other(name));
        let other: Map<String, Value> =
            other.map(|(name, it)| (name.clone(), it.clone())).collect();
        if !other.is_empty() {
            let text = Value::Object(other).to_string();
            result.insert("content".into(), json!([text_block(&text)]));
        }
    }

    /// Normalizes the response to a handshake. This host uses only the protocol version in it.
    fn normalize_handshake(&self, result: &mut Map<String, Value>) {
        let capabilities = result.entry("capabilities").or_insert(Value::Null);
        if drop_unparsable_fields::<ServerCapabilities>(capabilities, &[]).is_none() {
            *capabilities = json!({});
        }
        let info = result.entry("serverInfo").or_insert(Value::Null);
        if !info.is_object() {
            *info = json!({});
        }
        for name in ["name", "version"] {
            if !info[name].is_string() {
                self.note(&format!("the server does not send its {name}"));
                info[name] = "".into();
            }
        }
        drop_unparsable_fields::<Implementation>(info, &["name", "version"]);
        if result.get("instructions").is_some_and(|text| !text.is_string()) {
            result.remove("instructions");
        }
    }

    /// Normalizes a tool; returns `None` if it cannot be used.
    fn normalize_tool(&self, tool: Value) -> Option<Value> {
        let Value::Object(mut tool) = tool else {
            self.note("a tool that is not an object is left out");
            return None;
        };
        let Some(Value::String(name)) = tool.get("name") else {
            self.note("a tool without a name is left out");
            return None;
        };
        let name = one_line(name);
        names::rename_in_tool(&mut tool);
        if !tool.get("inputSchema").is_some_and(Value::is_object) {
            // A tool whose arguments are unknown can be called without arguments.
            self.note(&format!("the tool `{name}` has no `inputSchema`"));
            tool.insert("inputSchema".into(), json!({ "type": "object" }));
        }
        if let Some(annotations) = tool.get_mut("annotations")
            && drop_unparsable_fields::<ToolAnnotations>(annotations, &[]).is_none()
        {
            *annotations = json!({});
        }
        let mut tool = Value::Object(tool);
        let dropped = drop_unparsable_fields::<Tool>(&mut tool, &["name", "inputSchema"])?;
        if !dropped.is_empty() {
            let dropped = dropped.join("`, `");
            self.note(&format!(
                "`{dropped}` of the tool `{name}` is left out: its value is not valid"
            ));
        }
        Some(tool)
    }

    /// Normalizes a content block; returns `None` if it is empty.
    fn normalize_block(&self, block: Value) -> Option<Value> {
        let mut block = match block {
            Value::Object(block) => block,
            Value::Null => return None,
            Value::String(text) => return Some(text_block(&text)),
            other => return Some(text_block(&other.to_string())),
        };
        let kind = match block.get("type") {
            Some(Value::String(kind)) => kind.clone(),
            _ => guess_block_type(&block).to_owned(),
        };
        let required: &[&str] = match kind.as_str() {
            "text" => {
                match block.get("text") {
                    Some(Value::String(_)) => {}
                    Some(Value::Null) | None => return None,
                    Some(other) => drop(block.insert("text".into(), other.to_string().into())),
                }
                &["type", "text"]
            }
            "image" | "audio" => {
                if let Some(Value::String(own)) = block.remove("mime_type") {
                    block.entry("mimeType").or_insert(own.into());
                }
                if !block.get("mimeType").is_some_and(Value::is_string) {
                    block.insert("mimeType".into(), DEFAULT_MEDIA_TYPE.into());
                }
                &["type", "data", "mimeType"]
            }
            "resource" => {
                if let Some(contents) = block.get_mut("resource") {
                    normalize_resource(contents);
                }
                &["type", "resource"]
            }
            "resource_link" => {
                if let (Some(Value::String(uri)), false) =
                    (block.get("uri").cloned(), block.get("name").is_some_and(Value::is_string))
                {
                    block.insert("name".into(), uri.into());
                }
                &["type", "uri", "name"]
            }
            _ => &[],
        };
        block.insert("type".into(), kind.clone().into());
        let text = block.get("text").and_then(Value::as_str).map(str::to_owned);
        let mut block = Value::Object(block);
        if drop_unparsable_fields::<ContentBlock>(&mut block, required).is_some() {
            return Some(block);
        }
        let kind = one_line(&kind);
        // A block of an unknown type may have a text.
        let change = if text.is_some() { "replaced by its text" } else { "left out" };
        self.note(&format!("a content block of type `{kind}` is {change}: the block is not valid"));
        let left_out = || format!("[content of type `{kind}` left out]");
        Some(text_block(&text.unwrap_or_else(left_out)))
    }

    /// Logs and remembers a note, once.
    pub(crate) fn note(&self, what: &str) {
        let what = self.sanitizer.redact(what);
        let mut noted = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() < MAX_NOTES && !noted.contains(&what) {
            tracing::warn!(target: NOTES_TARGET, server = self.sanitizer.server_name(), "{what}");
            noted.push(what);
        }
    }

    /// Returns the notes in order.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Splits a JSON value into messages: the value is one message, or an array of messages, which is a
/// batch of the protocol of 2025-03-26. Sorts responses to the end of a batch, since nothing after
/// a response is read. Returns `None` for any other value.
pub(crate) fn split_messages(document: Value) -> Option<Vec<Value>> {
    match document {
        Value::Object(_) => Some(vec![document]),
        Value::Array(mut items) if !items.is_empty() && items.iter().all(is_message) => {
            items.sort_by_key(is_response);
            Some(items)
        }
        _ => None,
    }
}

fn is_message(value: &Value) -> bool {
    value.get("method").is_some() || is_response(value)
}

pub(crate) fn is_response(message: &Value) -> bool {
    message.get("result").is_some() || message.get("error").is_some()
}

/// Normalizes the id of a response to a number. All requests of this host have ids that are numbers,
/// which some servers send back as strings.
fn normalize_response_id(id: &mut Value) {
    if let Value::String(text) = &*id
        && let Ok(number) = text.parse::<i64>()
    {
        *id = number.into();
    }
}

/// Normalizes a JSON-RPC error to an object with an integer code and a string message.
fn normalize_error(error: &mut Value) {
    let text = match &*error {
        Value::Object(_) => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    if let Some(text) = text {
        *error = json!({ "message": text });
    }
    let Some(error) = error.as_object_mut() else { return };
    let code = match error.get("code") {
        Some(Value::Number(code)) => code.as_i64().and_then(|code| i32::try_from(code).ok()),
        Some(Value::String(code)) => code.trim().parse::<i32>().ok(),
        _ => None,
    };
    error.insert("code".into(), code.unwrap_or(INTERNAL_ERROR).into());
    let message = match error.get("message") {
        Some(Value::String(_)) => return,
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    error.insert("message".into(), message.into());
}

/// JSON-RPC code of an internal error.
const INTERNAL_ERROR: i32 = -32603;

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Normalizes an embedded resource. Text or Base64 data is kept even if the resource has no URI.
fn normalize_resource(contents: &mut Value) {
    if let Value::String(text) = contents {
        *contents = json!({ "text": text });
    }
    let Some(fields) = contents.as_object_mut() else { return };
    if !fields.get("uri").is_some_and(Value::is_string) {
        fields.insert("uri".into(), "".into());
    }
    let kept = if fields.contains_key("text") { "text" } else { "blob" };
    drop_unparsable_fields::<ResourceContents>(contents, &["uri", kept]);
}

/// Guesses the type of a content block that names no type.
fn guess_block_type(block: &Map<String, Value>) -> &'static str {
    let has = |name| block.contains_key(name);
    match () {
        () if has("text") => "text",
        () if has("resource") => "resource",
        () if has("data") => "image",
        () if has("uri") => "resource_link",
        () => "unknown",
    }
}

/// Converts a value to an array. `null` becomes an empty array, any other value its only item.
fn as_array(value: &mut Value) -> &mut Vec<Value> {
    if !value.is_array() {
        *value = match value.take() {
            Value::Null => json!([]),
            one => json!([one]),
        };
    }
    match value {
        Value::Array(items) => items,
        _ => unreachable!("the value is an array"),
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, InitializeResult, ListToolsResult, ServerJsonRpcMessage};

    use super::*;

    fn mended(mut message: Value) -> Value {
        Normalizer::new("graph").normalize(&mut message);
        message
    }

    fn tools(tools: Value) -> Vec<String> {
        let message = mended(json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": tools } }));
        let list: ListToolsResult = serde_json::from_value(message["result"].clone()).unwrap();
        list.tools.iter().map(|tool| tool.name.to_string()).collect()
    }

    fn blocks(content: Value) -> Value {
        let message = mended(json!({ "result": { "content": content } }));
        let result = message["result"].clone();
        serde_json::from_value::<CallToolResult>(result).unwrap();
        message["result"]["content"].clone()
    }

    #[test]
    fn invalid_tool_keeps_the_other_tools() {
        let fine = json!({ "name": "fine", "inputSchema": { "type": "object" } });
        for (odd, stays) in [
            (json!(null), false),
            (json!("add"), false),
            (json!({ "inputSchema": {} }), false),
            (json!({ "name": 7, "inputSchema": {} }), false),
            (json!({ "name": "odd", "inputSchema": null }), true),
            (json!({ "name": "odd" }), true),
            (json!({ "name": "odd", "inputSchema": [], "title": 7, "icons": "x" }), true),
            (json!({ "name": "odd", "inputSchema": {}, "description": ["a"], "_meta": 1 }), true),
            (json!({ "name": "odd", "inputSchema": {}, "annotations": "readOnly" }), true),
            (json!({ "name": "odd", "inputSchema": {}, "outputSchema": true }), true),
        ] {
            let expected: &[&str] = if stays { &["odd", "fine"] } else { &["fine"] };
            assert_eq!(tools(json!([odd, fine])), expected, "{odd}");
        }
        assert_eq!(tools(json!(null)), Vec::<String>::new());
        assert_eq!(tools(fine), ["fine"]);
    }

    #[test]
    fn invalid_hint_keeps_the_other_hints() {
        let hints = json!({ "readOnlyHint": true, "idempotentHint": "yes" });
        let tool = json!({ "name": "a", "inputSchema": {}, "annotations": hints });
        let message = mended(json!({ "result": { "tools": [tool] } }));
        let hints = &message["result"]["tools"][0]["annotations"];
        assert_eq!(hints, &json!({ "readOnlyHint": true }));
    }

    #[test]
    fn invalid_blocks_are_normalized() {
        let annotations = json!({ "audience": ["system"], "priority": 1 });
        for (block, expected) in [
            (json!("bare"), json!("bare")),
            (json!(7), json!("7")),
            (
                json!({ "type": "text", "text": "three", "annotations": annotations }),
                json!("three"),
            ),
            (json!({ "type": "text", "text": { "n": 1 } }), json!(r#"{"n":1}"#)),
            (json!({ "text": "no type" }), json!("no type")),
            (json!({ "type": "table", "text": "in words", "rows": [] }), json!("in words")),
            (json!({ "type": "table", "rows": [] }), json!("[content of type `table` left out]")),
            (json!({ "type": "image", "data": 7 }), json!("[content of type `image` left out]")),
        ] {
            let read = blocks(json!([block, { "type": "text", "text": "after" }]));
            assert_eq!(read[0]["text"], expected, "{block}");
            assert_eq!(read[1]["text"], "after", "{block}");
        }
        let picture =
            blocks(json!([{ "type": "image", "data": "aGk=", "mime_type": "image/png" }]));
        assert_eq!(picture[0]["mimeType"], "image/png");
        assert_eq!(blocks(json!("alone")), json!([{ "type": "text", "text": "alone" }]));
        assert_eq!(blocks(json!([null, { "type": "text" }])), json!([]));
        for resource in [
            json!("inside"),
            json!({ "text": "inside" }),
            json!({ "uri": 7, "text": "inside", "mimeType": 7 }),
        ] {
            let read = blocks(json!([{ "type": "resource", "resource": resource }]));
            let text = &read[0]["resource"]["text"];
            assert_eq!((&read[0]["type"], text), (&json!("resource"), &json!("inside")));
        }
        let data = blocks(json!([{ "type": "resource", "resource": { "blob": "aGk=" } }]));
        assert_eq!(data[0]["resource"]["blob"], "aGk=");
        let link = blocks(json!([{ "type": "resource_link", "uri": "file:///a" }]));
        assert_eq!(link[0]["name"], "file:///a");
    }

    #[test]
    fn call_errors_are_recognized_in_any_form() {
        for (result, is_error, text) in [
            (json!({ "isError": "true", "message": "no" }), true, r#"{"message":"no"}"#),
            (json!({ "isError": true, "error": "no" }), true, r#"{"error":"no"}"#),
            (json!({ "isError": "False", "value": 3 }), false, r#"{"value":3}"#),
            (json!({ "isError": 1, "message": "no" }), true, r#"{"message":"no"}"#),
            (json!({ "isError": 0, "value": 3 }), false, r#"{"value":3}"#),
            (json!({ "isError": null, "value": 3 }), false, r#"{"value":3}"#),
        ] {
            let message = mended(json!({ "result": result }));
            let read: CallToolResult = serde_json::from_value(message["result"].clone()).unwrap();
            assert_eq!(read.is_error.unwrap_or(false), is_error, "{result}");
            assert_eq!(message["result"]["content"][0]["text"], text, "{result}");
        }
        let bare = json!({ "isError": true });
        assert_eq!(mended(json!({ "result": bare }))["result"], bare);
    }

    #[test]
    fn batch_is_split_into_messages() {
        let said = json!({ "method": "notifications/message", "params": {} });
        let answer = json!({ "id": 1, "result": {} });
        assert_eq!(split_messages(answer.clone()), Some(vec![answer.clone()]));
        let both = json!([answer, said]);
        assert_eq!(split_messages(both), Some(vec![said.clone(), answer]));
        for printed in
            [json!([]), json!([1, 2]), json!([{ "a": 1 }, said]), json!("a"), json!(null)]
        {
            assert_eq!(split_messages(printed.clone()), None, "{printed}");
        }
    }

    #[test]
    fn invalid_handshake_fields_are_tolerated() {
        let version = "2025-11-25";
        for greeting in [
            json!({ "protocolVersion": version }),
            json!({ "protocolVersion": version, "capabilities": [], "serverInfo": "odd" }),
            json!({ "protocolVersion": version, "capabilities": { "tools": true },
                "serverInfo": { "name": 7, "icons": 1 }, "instructions": [] }),
        ] {
            let message = mended(json!({ "id": 1, "result": greeting }));
            let read: InitializeResult = serde_json::from_value(message["result"].clone()).unwrap();
            assert_eq!(read.protocol_version.as_str(), version);
            assert_eq!(read.server_info.version, "", "{greeting}");
        }
        let result = json!({ "content": [], "protocolVersion": version });
        assert_eq!(mended(json!({ "result": result }))["result"], result);
    }

    #[test]
    fn errors_get_a_code_and_a_message() {
        for error in
            [json!("no"), json!({ "message": "no" }), json!({ "code": "-32603", "message": "no" })]
        {
            let message = mended(json!({ "id": 1, "error": error }));
            assert_eq!(message["error"], json!({ "code": -32603, "message": "no" }));
            serde_json::from_value::<ServerJsonRpcMessage>(message).unwrap();
        }
    }

    #[test]
    fn null_result_or_error_is_dropped() {
        let answer = json!({ "id": 1, "result": { "content": [] }, "error": null });
        assert_eq!(
            mended(answer),
            json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [] } })
        );
        let refusal = json!({ "id": 1, "result": null, "error": { "code": 1, "message": "no" } });
        assert_eq!(mended(refusal).get("result"), None);
        let nothing = json!({ "id": 1, "result": null, "error": null });
        assert_eq!(mended(nothing), json!({ "jsonrpc": "2.0", "id": 1, "result": null }));
    }

    #[test]
    fn id_of_a_response_as_text_becomes_a_number() {
        for (id, expected) in [
            (json!("1"), json!(1)),
            (json!(1), json!(1)),
            (json!("a"), json!("a")),
            (json!(null), json!(null)),
        ] {
            assert_eq!(mended(json!({ "id": id, "result": {} }))["id"], expected);
            let error = json!({ "code": 1, "message": "no" });
            assert_eq!(mended(json!({ "id": id, "error": error }))["id"], expected);
        }
        let request = mended(json!({ "id": "1", "method": "ping" }));
        assert_eq!(request["id"], "1", "the server chooses the ids of its requests");
    }

    #[test]
    fn numbers_that_json_cannot_represent_become_null_and_are_noted() {
        let normalizer = Normalizer::new("graph");
        assert_eq!(normalizer.parse(b"{\"n\": NaN}").unwrap(), json!({ "n": null }));
        assert_eq!(normalizer.notes(), ["a number that JSON cannot represent is read as `null`"]);
        assert!(normalizer.parse(b"ready").is_err());
    }

    #[test]
    fn deviations_are_noted_once() {
        let normalizer = Normalizer::new("graph");
        for _ in 0..3 {
            normalizer.normalize(
                &mut json!({ "result": { "tools": [{ "name": "a", "inputSchema": null }] } }),
            );
        }
        assert_eq!(normalizer.notes(), ["the tool `a` has no `inputSchema`"]);
    }
}
