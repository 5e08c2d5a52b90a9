//! Model calls.

use std::borrow::Cow;

use wattle_graph::call::CallKind;
use wattle_graph::event::Tokens;
use wattle_graph::failure::Failure;
use wattle_graph::json_text;
use wattle_graph::llm::{Completion, CompletionRequest, Delta};

use crate::grant::Grants;
use crate::hostcall::HostCall;
use crate::limit::JOURNAL_REQUEST_BYTES;
use crate::ports::Caller;

/// Function that returns the model behind a route.
pub const ROUTE: &str = "llm.route";

/// Checks that the grants allow a model route.
///
/// # Errors
///
/// `denied` without a grant, with the line to add and its place.
pub(crate) fn check_route_grant(
    grants: &Grants,
    caller: &Caller,
    route: &str,
) -> Result<(), Failure> {
    let allows = |grants: &Grants| grants.llm.contains(route);
    if allows(grants) {
        return Ok(());
    }
    let what = format!("may not use the model route `{route}`");
    let change = format!("add `llm = [\"{route}\"]`");
    Err(grants.denial(caller, &what, &change, allows))
}

impl HostCall for CompletionRequest {
    type Output = Completion;
    const FUNCTION: &'static str = CallKind::Complete.name();
    const LOGS_START: bool = true;

    fn summary(&self) -> String {
        match &self.response_schema {
            Some(schema) => format!("{} -> {}", self.route, schema.name),
            None => self.route.clone(),
        }
    }

    /// Returns the length of the whole conversation, also of what the model does not get: the host
    /// reads all of it for the digest.
    fn referenced_bytes(&self) -> u64 {
        self.history.as_ref().map_or(0, |history| history.bytes)
    }

    /// Includes the messages of a short history, so that the log has the request as the model got
    /// it. A long request is stored with the digest of the history: its first bytes would be the
    /// oldest messages, which the log has already.
    fn resolved(&self) -> Option<Self> {
        let is_short = |request: &Self, bytes: u64| {
            let length = json_text::length(request);
            length.is_ok_and(|length| length + bytes <= JOURNAL_REQUEST_BYTES as u64)
        };
        let history = self.history.as_ref()?;
        if history.bytes > JOURNAL_REQUEST_BYTES as u64 || !is_short(self, history.bytes) {
            return None;
        }
        self.expanded().ok().map(Cow::into_owned).filter(|expanded| is_short(expanded, 0))
    }

    fn check_allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        check_route_grant(grants, caller, &self.route)
    }

    fn is_structured_output(&self) -> bool {
        self.response_schema.is_some()
    }

    fn tokens(answer: &Completion) -> Option<Tokens> {
        Some(Tokens {
            input: answer.usage.input_tokens.unwrap_or(0),
            output: answer.usage.output_tokens.unwrap_or(0),
        })
    }

    fn set_message_id(answer: &mut Completion, id: String) {
        answer.id = Some(id);
    }

    fn deltas(answer: &Completion) -> Vec<Delta> {
        answer.deltas()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::checkpoint::SharedList;
    use wattle_graph::id::Digest;
    use wattle_graph::llm::{Message, Part, Role};

    use super::*;
    use crate::hostcall::request::CallRequest;

    fn list(prefix: &str, content: &str) -> SharedList {
        let message =
            |n: u8| json!({ "id": format!("{prefix}{n}"), "role": "user", "content": "hm" });
        let last = json!({ "id": prefix, "role": "user", "content": content });
        (0..3).map(message).chain([last]).collect()
    }

    fn request(list: SharedList) -> CompletionRequest {
        let system = Message { role: Role::System, parts: vec![Part::Text("be brief".to_owned())] };
        let reference = serde_json::from_value(json!({ "channel": "m", "at": 1 })).unwrap();
        CompletionRequest::new("chat", vec![system]).with_history(reference, list).unwrap()
    }

    #[test]
    fn a_history_counts_as_the_messages_that_it_stands_for() {
        let call = request(list("m", "hi"));
        let (text, bytes) = (serde_json::to_string(&call).unwrap(), list("m", "hi").json_bytes());
        let request = CallRequest::of(&call, call.resolved().as_ref()).unwrap();
        assert_eq!(request.bytes, text.len() as u64 + bytes);
        assert_eq!(request.digest, Digest::of(text.as_bytes()));
    }

    #[test]
    fn a_request_is_the_same_if_only_ids_of_messages_differ() {
        let digest = |list| CallRequest::of(&request(list), None).unwrap().digest;
        assert_eq!(digest(list("m", "hi")), digest(list("other", "hi")));
        assert_ne!(digest(list("m", "hi")), digest(list("m", "ho")));
    }

    #[test]
    fn a_short_history_is_journaled_as_messages_and_a_long_one_by_its_digest() {
        let with_content = |bytes: usize| request(list("m", &"x".repeat(bytes)));
        let sum =
            |call: &CompletionRequest| json_text::length(call).unwrap() + call.referenced_bytes();
        // With this length, request and conversation have together as many bytes as the journal
        // stores of a request.
        let longest = 15_000 + JOURNAL_REQUEST_BYTES - sum(&with_content(15_000)) as usize;
        assert_eq!(sum(&with_content(longest)), JOURNAL_REQUEST_BYTES as u64);
        for (bytes, is_expanded) in
            [(2, true), (longest, true), (longest + 1, false), (10 * longest, false)]
        {
            let call = with_content(bytes);
            let resolved = call.resolved();
            let stored = CallRequest::of(&call, resolved.as_ref()).unwrap().journaled();
            let performed = is_expanded.then(|| call.expanded().unwrap().into_owned());
            assert_eq!(resolved, performed, "{bytes} bytes");
            let expected = json!(performed.as_ref().unwrap_or(&call));
            assert_eq!(stored, expected, "{bytes} bytes");
            assert_eq!(stored.get("history").is_some(), !is_expanded);
        }
    }
}
