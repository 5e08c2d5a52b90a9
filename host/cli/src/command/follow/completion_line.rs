//! The streamed text of a completion, as one short line.

use wattle_graph::event::{CallStarted, Streamed};
use wattle_graph::id::TaskId;
use wattle_graph::llm::Delta;

/// Number of characters that are shown, counted from the end of the text. The line fits next to the
/// spinner in a narrow window.
const MAX_SHOWN_CHARS: usize = 60;

/// The text of the completion that is being streamed. If several calls stream at the same time,
/// this is the text of the call with the newest delta.
#[derive(Debug, Default)]
pub(super) struct CompletionLine {
    call: Option<(TaskId, Vec<u32>, u32)>,
    text: String,
}

impl CompletionLine {
    /// Records the start of a call. The start of a repeated call discards the text of the previous
    /// attempt.
    pub(super) fn start_call(&mut self, call: &CallStarted) {
        if self.is_of(&call.task, &call.scope, call.call) {
            self.text.clear();
        }
    }

    /// Adds deltas. Returns the end of the text, or `None` if the text is not shown.
    pub(super) fn push(&mut self, streamed: &Streamed) -> Option<String> {
        let Streamed { task, scope, call, deltas, .. } = streamed;
        if !self.is_of(task, scope, *call) {
            self.call = Some((task.clone(), scope.clone(), *call));
            self.text.clear();
        }
        for delta in deltas {
            match delta {
                Delta::Text { text } => self.text.push_str(text),
                Delta::Restart => self.text.clear(),
                // Reasoning, tool calls, and delta types of newer hosts are only in the trace.
                _ => {}
            }
        }
        let is_document = self.text.trim_start().starts_with(['{', '[', '`']);
        if is_document { None } else { self.line() }
    }

    fn is_of(&self, task: &TaskId, scope: &[u32], call: u32) -> bool {
        self.call.as_ref().is_some_and(|of| (&of.0, &*of.1, of.2) == (task, scope, call))
    }

    /// Returns the end of the last line with text. The text is untrusted, so control characters are
    /// removed.
    fn line(&self) -> Option<String> {
        let line = self.text.lines().rfind(|line| !line.trim().is_empty())?;
        let shown: Vec<char> = line.trim().chars().filter(|c| !c.is_control()).collect();
        let cut = shown.len().saturating_sub(MAX_SHOWN_CHARS);
        let dots = if cut > 0 { "…" } else { "" };
        Some(format!("{dots}{}", shown[cut..].iter().collect::<String>()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn streamed(call: u32, deltas: &Value) -> Streamed {
        let document = json!({ "task": "t", "node": "agent", "call": call, "deltas": deltas });
        serde_json::from_value(document).unwrap()
    }

    fn text(call: u32, text: &str) -> Streamed {
        streamed(call, &json!([{ "kind": "text", "text": text }]))
    }

    fn started(call: u32) -> CallStarted {
        let (function, summary) = ("llm.complete", "chat");
        let document =
            json!({ "task": "t", "call": call, "function": function, "summary": summary });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn deltas_are_joined_and_the_end_is_shown() {
        let mut line = CompletionLine::default();
        line.start_call(&started(0));
        assert_eq!(line.push(&text(0, "Hel")).as_deref(), Some("Hel"));
        assert_eq!(line.push(&text(0, "lo\n\n")).as_deref(), Some("Hello"));
        let long = "x".repeat(MAX_SHOWN_CHARS + 1);
        assert_eq!(line.push(&text(0, &long)).unwrap(), format!("…{}", &long[1..]));
        assert_eq!(line.push(&text(1, "\x1b[31mnew")).as_deref(), Some("[31mnew"));
    }

    #[test]
    fn a_repeated_call_and_a_restart_discard_the_text() {
        let mut line = CompletionLine::default();
        line.push(&text(0, "before the crash"));
        line.start_call(&started(1));
        assert_eq!(line.push(&text(0, "?")).as_deref(), Some("before the crash?"));
        line.start_call(&started(0));
        assert_eq!(line.push(&text(0, "after")).as_deref(), Some("after"));
        let anew = json!([{ "kind": "restart" }, { "kind": "text", "text": "again" }]);
        assert_eq!(line.push(&streamed(0, &anew)).as_deref(), Some("again"));
    }

    #[test]
    fn documents_tool_calls_and_reasoning_are_not_shown() {
        let mut line = CompletionLine::default();
        for delta in [
            json!({ "kind": "reasoning", "text": "hm" }),
            json!({ "kind": "tool_call", "index": 0, "name": "add", "arguments": "{" }),
            json!({ "kind": "text", "text": "{\"kind\": " }),
            json!({ "kind": "text", "text": "\"operation\"}" }),
        ] {
            assert_eq!(line.push(&streamed(0, &json!([delta]))), None);
        }
    }
}
