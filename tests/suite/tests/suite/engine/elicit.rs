//! Elicitations of MCP servers during tool calls: each call gets its own answer, and no effect is
//! repeated or uses the answer of another call.

mod calls;
mod doubt;
mod ends;
mod hosts;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;
use wattle_graph::elicitation::{Elicitation, ElicitedQuestion};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;
use wattle_graph::tool::{ToolOutput, ToolRequest};
use wattle_run::gate::Gate;
use wattle_run::grant::{Grants, InDoubtPolicy, ToolGrant};
use wattle_run::hostcall::runs::EndedRun;
use wattle_run::ports::sandbox::{ToolHints, ToolInfo};
use wattle_run::ports::tool_server::{ServerCall, ServerCallResult};
use wattle_run::ports::{Caller, ToolServers};
use wattle_suite::native::{Answer, NativePlugin};
use wattle_suite::world::{World, questions};

/// Maximum duration of a wait.
const SOON: Duration = Duration::from_mins(1);

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
reducer = "append"
[graphs.one.nodes.work]
plugin = "p"
"#;

const TWO: &str = r#"
[graphs.two]
entry = ["a", "b"]
[graphs.two.channels.out]
reducer = "append"
[graphs.two.nodes.a]
plugin = "p"
[graphs.two.nodes.b]
plugin = "p"
"#;

const THEN: &str = r#"
[graphs.then]
entry = "work"
[graphs.then.channels.out]
reducer = "append"
[graphs.then.nodes.work]
plugin = "p"
goto = "c"
[graphs.then.nodes.c]
plugin = "p"
"#;

/// The MCP servers `far` and, if `is_twice` is set, `near`, with a tool that elicits an answer
/// before it books.
struct Desk {
    /// True if the server holds calls open for an answer. Otherwise a call ends with its questions.
    holds: bool,
    /// The number of rounds of a call.
    rounds: usize,
    text: String,
    /// Threads of held calls by name.
    held: Mutex<BTreeMap<String, ThreadId>>,
    /// Calls that start, alone or with answers.
    calls: AtomicUsize,
    booked: AtomicUsize,
    /// Number of further calls that fail before they book.
    fails: AtomicUsize,
    /// Number of further calls whose result the server loses.
    losses: AtomicUsize,
    /// Number of further calls with the argument `hangs` that never end.
    hangs: AtomicUsize,
    is_twice: AtomicBool,
    /// Number of further tool lists that fail.
    unlisted: AtomicUsize,
    /// Number of held calls so far, from which the next call gets its name (`call 0`, `call 1`).
    named: AtomicUsize,
    asked: Notify,
    /// Notified when a held call is released.
    freed: Notify,
}

impl Desk {
    fn new(holds: bool, rounds: usize) -> Self {
        Self {
            holds,
            rounds,
            text: "Sure?".into(),
            held: Mutex::default(),
            calls: AtomicUsize::new(0),
            booked: AtomicUsize::new(0),
            fails: AtomicUsize::new(0),
            losses: AtomicUsize::new(0),
            hangs: AtomicUsize::new(0),
            is_twice: AtomicBool::new(false),
            unlisted: AtomicUsize::new(0),
            named: AtomicUsize::new(0),
            asked: Notify::new(),
            freed: Notify::new(),
        }
    }

    fn holding() -> Arc<Self> {
        Arc::new(Self::new(true, 1))
    }

    /// Returns the number of held calls.
    fn waiting(&self) -> usize {
        self.held.lock().unwrap().len()
    }

    /// Waits until at most `most` calls are held.
    async fn lets_go(&self, most: usize) {
        let freed = async {
            while self.waiting() > most {
                self.freed.notified().await;
            }
        };
        timeout(SOON, freed).await.expect("calls are released");
        assert_eq!(self.waiting(), most);
    }

    /// Returns the numbers of calls and bookings.
    fn counts(&self) -> (usize, usize) {
        (self.calls.load(Ordering::SeqCst), self.booked.load(Ordering::SeqCst))
    }

    /// Drops all held calls, like a server that restarts.
    fn lose(&self) {
        self.held.lock().unwrap().clear();
    }

    /// Continues a call after `answered` rounds.
    fn next(&self, call: ServerCall<'_>, answered: usize) -> Result<ServerCallResult, Failure> {
        if answered < self.rounds {
            let held = self.holds.then(|| {
                let mut held = self.held.lock().unwrap();
                let name = format!("call {}", self.named.fetch_add(1, Ordering::SeqCst));
                held.insert(name.clone(), call.thread.unwrap().clone());
                name
            });
            let schema = json!({ "type": "object" });
            let question = ElicitedQuestion { message: self.text.clone(), schema };
            let questions = BTreeMap::from([("sure".to_owned(), question)]);
            let state = (!self.holds).then(|| answered.to_string());
            self.asked.notify_one();
            return Ok(ServerCallResult::Elicits(Elicitation { questions, state, held }));
        }
        if one_less(&self.fails) {
            return Err(away());
        }
        self.booked.fetch_add(1, Ordering::SeqCst);
        if one_less(&self.losses) {
            return Err(Failure::new(code::IN_DOUBT, "lost"));
        }
        let answers = call.rounds.iter().flat_map(|round| round.answers.values());
        let said: Vec<&Value> = answers.map(|answer| &answer["action"]).collect();
        let structured = Some(json!(said));
        Ok(ServerCallResult::Returned(ToolOutput { structured, ..ToolOutput::default() }))
    }
}

fn away() -> Failure {
    Failure::new(code::UNAVAILABLE, "away").retryable()
}

/// Decrements a counter, and returns whether it was above zero.
fn one_less(counter: &AtomicUsize) -> bool {
    let less = |count: usize| count.checked_sub(1);
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
}

#[async_trait]
impl ToolServers for Desk {
    fn has_server(&self, server: &str) -> bool {
        server == "far" || server == "near"
    }

    async fn list(&self, _: &Caller, server: &str) -> Result<Vec<ToolInfo>, Failure> {
        if one_less(&self.unlisted) {
            return Err(away());
        }
        if server == "near" && !self.is_twice.load(Ordering::SeqCst) {
            return Ok(Vec::new());
        }
        Ok(vec![ToolInfo {
            name: "book".into(),
            description: String::new(),
            arguments_schema: json!({}),
            accepts_invalid: false,
            hints: ToolHints::default(),
            reference: None,
            unavailable: None,
        }])
    }

    async fn call(
        &self,
        _: &Caller,
        _: &str,
        call: ServerCall<'_>,
    ) -> Result<ServerCallResult, Failure> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if call.request.arguments["hangs"] == true && one_less(&self.hangs) {
            std::future::pending::<()>().await;
        }
        let state = call.rounds.last().and_then(|round| round.elicitation.state.as_deref());
        let answered = match state {
            Some(state) => state.parse::<usize>().unwrap() + 1,
            None => call.rounds.len(),
        };
        self.next(call, answered)
    }

    async fn continue_call(
        &self,
        _: &Caller,
        _: &str,
        call: ServerCall<'_>,
    ) -> Result<Option<ServerCallResult>, Failure> {
        let name = call.rounds.last().and_then(|round| round.elicitation.held.clone()).unwrap();
        let is_own = {
            let mut held = self.held.lock().unwrap();
            let is_own = held.get(&name) == call.thread;
            if is_own {
                held.remove(&name);
            }
            is_own
        };
        if is_own { self.next(call, call.rounds.len()).map(Some) } else { Ok(None) }
    }

    fn held_calls(&self, thread: Option<&ThreadId>) -> Vec<(ThreadId, String)> {
        let held = self.held.lock().unwrap();
        let meant = held.iter().filter(|(_, of)| thread.is_none_or(|thread| thread == *of));
        meant.map(|(name, of)| (of.clone(), name.clone())).collect()
    }

    fn release_call(&self, thread: &ThreadId, held: &str) {
        self.held.lock().unwrap().retain(|name, of| of != thread || name != held);
        self.freed.notify_one();
    }
}

fn request(arguments: Value) -> ToolRequest {
    ToolRequest {
        tool: "book".into(),
        call_id: String::new(),
        arguments,
        timeout_ms: None,
        state: None,
    }
}

async fn book(gate: &Gate, node: &str) -> Answer {
    let answer = gate.call_tool(request(json!({}))).await?;
    Ok(json!({ "out": { node: answer.structured } }))
}

fn caller() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("work", |_, gate| async move { book(&gate, "work").await })
        .node("a", |_, gate| async move { book(&gate, "a").await })
        .node("b", |_, gate| async move { book(&gate, "b").await })
        .node("c", |_, _| async move { Ok(json!({ "out": "c" })) })
}

fn world_of(graph: &str, plugin: NativePlugin, desk: &Arc<Desk>, in_doubt: InDoubtPolicy) -> World {
    let tools = ["mcp:far/*", "mcp:near/*"].iter();
    let tools: Vec<ToolGrant> = tools.map(|tool| tool.parse().unwrap()).collect();
    let grants = Grants { tools, in_doubt, ..Grants::default() };
    World::with_servers(graph, plugin, desk.clone(), grants)
}

fn world(graph: &str, desk: &Arc<Desk>) -> World {
    world_of(graph, caller(), desk, InDoubtPolicy::Fail)
}

fn accept() -> Value {
    json!({ "action": "accept", "content": {} })
}

fn decline() -> Value {
    json!({ "action": "decline", "content": null })
}

/// Starts a run that is interrupted by an elicitation, which is then in the list of pending
/// interrupts. Returns the run and its thread.
async fn asked(world: &World) -> (EndedRun, ThreadId) {
    let ended = world.run(json!({})).await;
    let open = questions(&ended);
    assert_eq!(open[0].payload["message"], "Sure?");
    let thread = ended.run.thread.clone();
    let listed = world.pending_interrupts().await;
    assert!(listed.contains(&(thread.clone(), open)), "{listed:?}");
    (ended, thread)
}
