//! A conversation on one thread, and the figures of its turns.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use wattle_suite::load::Client;

use super::app::{CALLS, GRAPH, message};

/// Number of messages that the nodes write in a turn: a completion and a result for each tool call,
/// and the last completion.
const WRITTEN: usize = 2 * CALLS + 1;

/// Number of messages of a turn: those of the nodes, and that of the user.
pub(super) const MESSAGES: usize = WRITTEN + 1;

/// The stream modes of the client: messages in parts, and the writes of nodes. In these modes, the
/// stream has no whole state.
const MODES: [&str; 2] = ["messages-tuple", "updates"];

/// The types of the events with durations and supersteps.
const TYPES: &str = "called,task_finished,checkpointed";

/// A conversation.
pub(super) struct Conversation {
    client: Client,
    thread: String,
    /// Number of turns so far.
    turns: usize,
    /// Sequence number of the newest event of the last turn.
    last_seq: u64,
}

/// The figures of one turn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    /// Time from the request for the run to the end of its stream.
    pub(super) total_ms: f64,
    /// Time of the model calls.
    pub(super) model_ms: f64,
    /// Time of the tool calls.
    pub(super) tools_ms: f64,
    /// Time of the tasks, with their calls.
    tasks_ms: f64,
    /// Number of supersteps.
    pub(super) supersteps: usize,
    model_calls: usize,
    tool_calls: usize,
}

impl Conversation {
    /// Creates a thread.
    pub(super) async fn open(url: &str) -> Result<Self> {
        let client = Client::new(url)?;
        let thread = client.create_thread().await?;
        Ok(Self { client, thread, turns: 0, last_seq: 0 })
    }

    /// Returns the number of turns so far.
    pub(super) fn turns(&self) -> usize {
        self.turns
    }

    /// Sends the next message and reads the stream of the run to its end.
    ///
    /// # Errors
    ///
    /// If the run fails, or has another number of messages or calls than expected.
    pub(super) async fn turn(&mut self) -> Result<Turn> {
        self.turns += 1;
        let turn = self.measure().await;
        turn.with_context(|| format!("turn {}", self.turns))
    }

    /// Returns the bytes of the thread in the store.
    pub(super) async fn stored_bytes(&self) -> Result<f64> {
        let storage = self.client.get(&format!("/threads/{}/storage", self.thread)).await?;
        storage["total_bytes"].as_f64().with_context(|| format!("no size: {storage}"))
    }

    /// Checks the number of messages in the state of the thread.
    ///
    /// # Errors
    ///
    /// If it is another number than expected.
    pub(super) async fn check(&self) -> Result<()> {
        let state = self.client.get(&format!("/threads/{}/state", self.thread)).await?;
        let messages = state["values"]["messages"].as_array().map_or(0, Vec::len);
        let expected = self.turns * MESSAGES;
        ensure!(messages == expected, "the thread has {messages} messages in place of {expected}");
        Ok(())
    }

    async fn measure(&mut self) -> Result<Turn> {
        let began = Instant::now();
        let written = self.run().await?;
        let mut turn = Turn { total_ms: milliseconds(began.elapsed()), ..Turn::default() };
        ensure!(written == WRITTEN, "the nodes wrote {written} messages in place of {WRITTEN}");
        for event in self.new_events().await? {
            turn.add(&event)?;
        }
        let Turn { model_calls, tool_calls, .. } = turn;
        ensure!(
            (model_calls, tool_calls) == (CALLS + 1, CALLS),
            "the run has {model_calls} model calls and {tool_calls} tool calls"
        );
        Ok(turn)
    }

    /// Executes the run of a turn. Returns the number of messages that its nodes wrote.
    async fn run(&self) -> Result<usize> {
        let path = format!("/threads/{}/runs/stream", self.thread);
        let input = json!({ "messages": [{ "role": "user", "content": message(self.turns) }] });
        let body = json!({ "assistant_id": GRAPH, "input": input, "stream_mode": MODES });
        let request = self.client.request(Method::POST, &path).json(&body);
        let mut frames = self.client.stream(request).await?;
        let mut written = 0;
        while let Some(frame) = frames.next().await? {
            ensure!(frame.event != "error", "the run failed: {}", frame.data);
            if frame.event == "updates" {
                written += messages_in(&serde_json::from_str(&frame.data)?);
            }
        }
        Ok(written)
    }

    /// Reads outlines of the events since the last turn.
    async fn new_events(&mut self) -> Result<Vec<Value>> {
        let Self { thread, last_seq, .. } = self;
        let path =
            format!("/api/v1/threads/{thread}/log?after={last_seq}&types={TYPES}&outline=true");
        let page = self.client.get(&path).await?;
        ensure!(page["next_after"].is_null(), "a page of the log does not have the whole turn");
        self.last_seq = page["last_seq"].as_u64().with_context(|| format!("no number: {page}"))?;
        Ok(page["items"].as_array().cloned().unwrap_or_default())
    }
}

impl Turn {
    /// Returns the time without model calls.
    pub(super) fn rest_ms(&self) -> f64 {
        self.total_ms - self.model_ms
    }

    /// Returns the time of the tasks without their model calls and tool calls.
    pub(super) fn nodes_ms(&self) -> f64 {
        self.tasks_ms - self.model_ms - self.tools_ms
    }

    /// Returns the time outside of tasks.
    pub(super) fn host_ms(&self) -> f64 {
        self.total_ms - self.tasks_ms
    }

    /// Adds the outline of an event.
    fn add(&mut self, event: &Value) -> Result<()> {
        let took_ms = event["duration_us"].as_f64().unwrap_or_default() / 1e3;
        match (event["type"].as_str(), event["function"].as_str()) {
            (Some("called"), function) => {
                ensure!(event["ok"] == true, "a call failed: {event}");
                match function {
                    Some("llm.complete") => {
                        self.model_ms += took_ms;
                        self.model_calls += 1;
                    }
                    Some("tools.call") => {
                        self.tools_ms += took_ms;
                        self.tool_calls += 1;
                    }
                    _ => {}
                }
            }
            (Some("task_finished"), _) => self.tasks_ms += took_ms,
            (Some("checkpointed"), _) if event["source"] == "loop" => self.supersteps += 1,
            _ => {}
        }
        Ok(())
    }
}

/// Returns the number of messages in the writes of a node.
fn messages_in(update: &Value) -> usize {
    let nodes = update.as_object().into_iter().flatten();
    nodes.filter_map(|(_, writes)| writes["messages"].as_array()).map(Vec::len).sum()
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
