//! The nodes of the graph `agent`, in the order of their execution, and the node of its subgraph.

use wattle_plugin::prelude::{
    Context, Deserialize, Empty, Failure, JsonSchema, Serialize, Value, interrupt, json, node, runs,
};

use crate::message::{asking, assistant, spoken, tool_answer};
use crate::{progress, python};

/// The subgraph that `run_subgraph` starts.
const SUBGRAPH: &str = "subgraph";

/// Output of the nodes of `agent`.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Update {
    messages: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    items: Vec<String>,
}

impl Update {
    fn new(messages: Vec<Value>, item: &str) -> Self {
        Self { messages, value: None, items: vec![item.to_owned()] }
    }
}

/// Streams a message.
#[node]
pub(crate) fn stream_message(_context: &Context, _input: Empty) -> Result<Update, Failure> {
    progress::begins("stream_message")?;
    let message = spoken("ai-msg-1", "Hello, world!")?;
    progress::ends("stream_message")?;
    Ok(Update { value: Some("x".to_owned()), ..Update::new(vec![message], "streamed") })
}

/// Writes a tool call and its result as messages, without a call of a tool.
#[node]
pub(crate) fn call_tool(_context: &Context, _input: Empty) -> Result<Update, Failure> {
    progress::begins("call_tool")?;
    let call = asking("ai-msg-2", "tc-1", "search", json!({"query": "v3"}));
    let answer = tool_answer("tc-1", "result for 'v3'");
    progress::ends("call_tool")?;
    Ok(Update::new(vec![call, answer], "tool"))
}

/// Asks a person and writes the answer into a message.
#[node]
pub(crate) fn ask_human(_context: &Context, _input: Empty) -> Result<Update, Failure> {
    progress::begins("ask_human")?;
    let answer = interrupt::ask("Are we good?")?;
    progress::ends_with("ask_human", &answer)?;
    let said = format!("Human said: {}", python::text(&answer));
    Ok(Update::new(vec![assistant("ai-msg-3", &said)], "asked"))
}

/// Runs a subgraph and writes its messages.
#[node]
pub(crate) fn run_subgraph(_context: &Context, _input: Empty) -> Result<Update, Failure> {
    progress::begins("run_subgraph")?;
    let input = json!({"messages": [], "note": ""});
    let ended = runs::Start::graph(SUBGRAPH).input(input).start_and_wait()?;
    let state = Subgraph::deserialize(ended.completed()?)?;
    progress::ends("run_subgraph")?;
    Ok(Update::new(state.messages, "sub"))
}

/// The state of the subgraph.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Subgraph {
    messages: Vec<Value>,
    note: String,
}

/// The only node of the subgraph.
#[node]
pub(crate) fn sub(_context: &Context, _input: Empty) -> Result<Subgraph, Failure> {
    progress::begins("sub_node")?;
    let messages = vec![assistant("sub-msg-1", "from subgraph")];
    progress::ends("sub_node")?;
    Ok(Subgraph { messages, note: "ran".to_owned() })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::export::Node;
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Context, Failure, Value, json};
    use wattle_plugin::runs::{EndedRun, Outcome};
    use wattle_plugin::testing::{self, FakeHost};

    use super::{ask_human, call_tool, run_subgraph, stream_message, sub};

    fn run<N: Node>(host: &FakeHost) -> Result<Decision, Failure> {
        host.run(|| testing::run_node::<N>(&Context::default(), &json!({})))
    }

    fn progress(step: &str, phase: &str) -> (String, Value) {
        ("progress".to_owned(), json!({"name": "progress", "step": step, "phase": phase}))
    }

    #[test]
    fn a_message_is_streamed_between_progress_events() {
        let host = FakeHost::new();
        let decision = run::<stream_message>(&host).unwrap();
        let names: Vec<_> = host.emitted().into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["progress", "message.delta", "message.delta", "message.end", "progress"]
        );
        assert_eq!(decision.update("value"), Some(&json!("x")));
        assert_eq!(decision.update("items"), Some(&json!(["streamed"])));
        assert_eq!(decision.update("messages").unwrap()[0]["content"], "Hello, world!");
    }

    #[test]
    fn a_written_tool_call_has_its_result_and_calls_no_tool() {
        let host = FakeHost::new();
        let decision = run::<call_tool>(&host).unwrap();
        let messages = decision.update("messages").unwrap();
        assert_eq!(
            messages[0]["tool_calls"],
            json!([{"id": "tc-1", "name": "search", "arguments": {"query": "v3"}}])
        );
        assert_eq!(
            (&messages[1]["role"], &messages[1]["tool_call_id"]),
            (&json!("tool"), &json!("tc-1"))
        );
        assert!(host.tool_calls().is_empty() && decision.update("value").is_none());
    }

    #[test]
    fn an_answer_is_emitted_unchanged_and_written_as_text() {
        for (answer, said) in [
            (json!("yes"), "Human said: yes"),
            (json!(true), "Human said: True"),
            (json!(1.5), "Human said: 1.5"),
            (json!({"a": 1}), "Human said: {'a': 1}"),
        ] {
            let host = FakeHost::new().answer(answer.clone());
            let decision = run::<ask_human>(&host).unwrap();
            assert_eq!(decision.update("messages").unwrap()[0]["content"], said);
            assert_eq!(host.questions()[0].payload, json!("Are we good?"));
            assert_eq!(host.emitted()[0], progress("ask_human", "start"));
            assert_eq!(host.emitted()[1].1["answer"], answer);
        }
    }

    #[test]
    fn without_an_answer_the_step_does_not_end() {
        let host = FakeHost::new();
        assert_eq!(run::<ask_human>(&host).unwrap_err().code, "interrupted");
        assert_eq!(host.emitted(), [progress("ask_human", "start")]);
    }

    #[test]
    fn the_messages_of_the_subgraph_are_written() {
        let state = || json!({"messages": [{"id": "sub-msg-1"}], "note": "ran"});
        let host = FakeHost::new().run_ends(move |run| EndedRun {
            run: run.clone(),
            outcome: Outcome::Completed,
            state: state(),
        });
        let decision = run::<run_subgraph>(&host).unwrap();
        assert_eq!(decision.update("messages"), Some(&json!([{"id": "sub-msg-1"}])));
        assert_eq!(decision.update("items"), Some(&json!(["sub"])));
        let started: Vec<_> = host.started().into_iter().map(|start| start.graph).collect();
        assert_eq!(started, ["subgraph"]);
    }

    #[test]
    fn the_subgraph_emits_progress_and_a_note() {
        let host = FakeHost::new();
        let decision = run::<sub>(&host).unwrap();
        assert_eq!(decision.update("note"), Some(&json!("ran")));
        assert_eq!(host.emitted(), [progress("sub_node", "start"), progress("sub_node", "end")]);
    }
}
