//! A thread of the reference graph `agent` for tests. Its first run streams a message, writes a
//! tool call and raises an interrupt; the second run starts a subgraph after the answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use wattle_graph::call::CallKind;
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, CheckpointSource, Trigger, Versions};
use wattle_graph::event::{
    Answered, CallStarted, Called, Checkpointed, Custom, Event, EventKind, InterruptRaised,
    RunEnded, RunReason, RunStarted, RunStatus, Streamed, SubgraphEnd, TaskFailed, TaskFault,
    TaskFinished, TaskStarted, Tokens, Write,
};
use wattle_graph::failure::Failure;
use wattle_graph::id::{
    CheckpointId, Digest, InterruptId, Namespace, NodeName, RunId, TaskId, ThreadId,
};
use wattle_graph::llm::Delta;

use crate::agent_server::id::{input_uuid, task_uuid};
use crate::agent_server::thread_info::ThreadInfo;
use crate::agent_server::v1::Context;
use crate::projection::{EventState, NeededState};

/// Ids of the run until the interrupt and of the run after the answer.
pub(crate) const RUNS: [&str; 2] =
    ["01a1ffdc-236b-73a2-b69b-ef10dd233ed6", "01a1ffdc-259b-758f-8f72-a42ea25ae321"];

/// A builder of an event log and its checkpoints.
#[derive(Clone)]
pub(crate) struct Sample {
    pub(crate) events: Vec<Event>,
    pub(super) checkpoints: BTreeMap<(Namespace, CheckpointId), Checkpoint>,
    run: RunId,
    namespace: Namespace,
    /// Names of nodes with their tasks, in the order in which the tasks started.
    pub(super) tasks: Vec<(String, TaskId)>,
    /// Newest checkpoint of each graph.
    at: BTreeMap<Namespace, Checkpoint>,
    last: u64,
}

pub(super) fn thread() -> ThreadId {
    ThreadId::new("01a1ffdc-22ab-744e-a2fc-8bb051a654f8").unwrap()
}

pub(crate) fn thread_info() -> ThreadInfo {
    let channels = BTreeSet::from(["messages".to_owned()]);
    ThreadInfo { thread: thread(), origin: thread(), channels }
}

pub(crate) fn context(run: &str) -> Context {
    Context {
        thread_info: thread_info(),
        run: RunId::new(run).unwrap(),
        graph_id: "agent".to_owned(),
        assistant_id: "fe096781-5601-53d2-b2f6-0d3403f7e9ca".to_owned(),
        metadata: Map::from_iter([("graph_id".to_owned(), "agent".into())]),
    }
}

impl Sample {
    pub(super) fn new() -> Self {
        Self {
            events: Vec::new(),
            checkpoints: BTreeMap::new(),
            run: RunId::new(RUNS[0]).unwrap(),
            namespace: Namespace::root(),
            tasks: Vec::new(),
            at: BTreeMap::new(),
            last: 0,
        }
    }

    /// Returns the thread up to the interrupt.
    pub(super) fn until_question() -> Self {
        let mut log = Self::new();
        log.start(RunReason::Input);
        let state = json!({ "messages": [], "value": "i", "items": [] });
        log.checkpoint(CheckpointSource::Input, 0, state.clone(), &["stream_message"]);
        log.begin("stream_message");
        log.progress("stream_message", "start");
        log.custom("message.delta", json!({ "id": "ai-msg-1", "text": "Hello," }));
        log.custom("message.delta", json!({ "id": "ai-msg-1", "text": " world!" }));
        log.custom("message.end", json!({ "id": "ai-msg-1" }));
        log.progress("stream_message", "end");
        let first = json!({ "id": "ai-msg-1", "role": "assistant", "content": "Hello, world!" });
        log.finish(json!({ "messages": [first], "value": "x", "items": ["streamed"] }));
        let state = json!({ "messages": [first], "value": "x", "items": ["streamed"] });
        log.checkpoint(CheckpointSource::Loop, 1, state, &["call_tool"]);

        log.begin("call_tool");
        log.progress("call_tool", "start");
        log.progress("call_tool", "end");
        let call = json!({ "id": "ai-msg-2", "role": "assistant", "content": "", "tool_calls": [
            { "id": "tc-1", "name": "search", "arguments": { "query": "v3" } },
        ] });
        let mut answer = json!({
            "role": "tool", "content": "result for 'v3'", "tool_call_id": "tc-1",
        });
        log.finish(json!({ "messages": [call, answer], "items": ["tool"] }));
        answer["id"] = "msg-1".into();
        let messages = json!([first, call, answer]);
        let state = json!({ "messages": messages, "value": "x", "items": ["streamed", "tool"] });
        log.checkpoint(CheckpointSource::Loop, 2, state, &["ask_human"]);

        log.begin("ask_human");
        log.progress("ask_human", "start");
        log.ask("Are we good?".into());
        log.end(RunStatus::Interrupted);
        log
    }

    /// Returns the whole thread, with both runs.
    pub(crate) fn whole() -> Self {
        let mut log = Self::until_question();
        log.go_on(RUNS[1]);
        log.start(RunReason::Resume);
        log.answer("yes".into());
        log.begin("ask_human");
        log.progress("ask_human", "start");
        let end = json!({
            "name": "progress", "step": "ask_human", "phase": "end", "answer": "yes",
        });
        log.custom("progress", end);
        let said = json!({ "id": "ai-msg-3", "role": "assistant", "content": "Human said: yes" });
        log.finish(json!({ "messages": [said], "items": ["asked"] }));
        let mut state = log.at[&Namespace::root()].state();
        push(&mut state, "messages", said);
        push(&mut state, "items", "asked".into());
        log.checkpoint(CheckpointSource::Loop, 3, state.clone(), &["run_subgraph"]);

        log.begin("run_subgraph");
        log.progress("run_subgraph", "start");
        let task = log.task();
        let child = Namespace::root().for_task(&node("run_subgraph"), &task);
        log.namespace = child.clone();
        log.checkpoint(CheckpointSource::Input, 0, json!({ "messages": [], "note": "" }), &["sub"]);
        log.begin("sub");
        log.progress("sub_node", "start");
        log.progress("sub_node", "end");
        let said = json!({ "id": "sub-msg-1", "role": "assistant", "content": "from subgraph" });
        log.finish(json!({ "messages": [said], "note": "ran" }));
        log.checkpoint(
            CheckpointSource::Loop,
            1,
            json!({ "messages": [said], "note": "ran" }),
            &[],
        );
        log.namespace = Namespace::root();
        log.tasks.push(("run_subgraph".to_owned(), task));
        log.progress("run_subgraph", "end");
        let writes = json!({ "messages": [said], "items": ["sub"] });
        log.finish_with(
            writes,
            Some(SubgraphEnd { namespace: child, checkpoint: None, persists: false }),
        );
        push(&mut state, "messages", said);
        push(&mut state, "items", "sub".into());
        log.checkpoint(CheckpointSource::Loop, 4, state, &[]);
        log.end(RunStatus::Completed);
        log
    }

    /// Returns the state that a stream needs for an event.
    pub(crate) fn read(&self, need: Option<NeededState>, event: &Event) -> EventState {
        let newest = |last_seq: u64| {
            let until = self.events.iter().take_while(|event| event.seq <= last_seq);
            let made = until.filter_map(|event| match &event.kind {
                EventKind::Checkpointed(made) if event.namespace.is_root() => Some(made),
                _ => None,
            });
            made.last().map(|made| (Namespace::root(), made.checkpoint))
        };
        let needs_parent = matches!(need, Some(NeededState::Input(..)));
        let wanted = need.and_then(|need| match need {
            NeededState::Checkpoint(namespace, id) | NeededState::Input(namespace, id) => {
                Some((namespace, id))
            }
            NeededState::Start => newest(event.seq - 1),
            NeededState::Current => newest(event.seq),
        });
        let checkpoint = wanted.and_then(|place| self.checkpoints.get(&place).cloned());
        let made = checkpoint.as_ref().filter(|_| needs_parent);
        let parent = made.and_then(|made| {
            self.checkpoints.get(&(made.meta.namespace.clone(), made.meta.parent?)).cloned()
        });
        EventState { checkpoint, parent, ..EventState::default() }
    }

    /// Returns the id of the interrupt.
    pub(super) fn question(&self) -> &str {
        let raised = self.events.iter().find_map(|event| match &event.kind {
            EventKind::InterruptRaised(raised) => Some(raised.interrupt.as_str()),
            _ => None,
        });
        raised.unwrap()
    }

    /// Replaces ids of tasks and checkpoints in a text by names.
    pub(super) fn readable(&self, mut text: String) -> String {
        for (node, task) in &self.tasks {
            text = text.replace(&task_uuid(task), &format!("<{node}>"));
        }
        for (_, id) in self.checkpoints.keys() {
            text = text.replace(&thread_info().checkpoint_id(*id), &format!("<checkpoint {id}>"));
            let before = input_uuid(&thread(), *id).to_string();
            text = text.replace(&before, &format!("<before {id}>"));
        }
        text
    }

    /// Starts another run.
    pub(super) fn go_on(&mut self, run: &str) {
        self.run = RunId::new(run).unwrap();
    }

    pub(super) fn push(&mut self, kind: EventKind) {
        let seq = self.events.len() as u64 + 1;
        let (run, namespace) = (self.run.clone(), self.namespace.clone());
        self.events.push(Event { seq, at_ms: 1_795_293_980_000, run, namespace, kind });
    }

    pub(super) fn start(&mut self, reason: RunReason) {
        let (graph, digest) = ("agent".parse().unwrap(), Digest::of(b""));
        self.push(EventKind::RunStarted(RunStarted {
            graph,
            digest,
            reason,
            context: Value::Null,
            principal: None,
        }));
    }

    pub(super) fn end(&mut self, status: RunStatus) {
        let failure = (status == RunStatus::Failed).then(|| Failure::new("denied", "not allowed"));
        self.push(EventKind::RunEnded(RunEnded {
            status,
            failure,
            drained: false,
            principal: None,
            store_us: 0,
        }));
    }

    pub(super) fn checkpoint(
        &mut self,
        source: CheckpointSource,
        step: u32,
        state: Value,
        next: &[&str],
    ) {
        self.last += 1;
        let id = CheckpointId(self.last);
        let Value::Object(values) = state else { panic!("a state is an object") };
        let values = values.into_iter().map(|(name, value)| (name.parse().unwrap(), value.into()));
        let meta = CheckpointMeta {
            id,
            parent: self.at.get(&self.namespace).map(|before| before.meta.id),
            namespace: self.namespace.clone(),
            step,
            source,
            run: self.run.clone(),
            at_ms: 0,
            version: None,
            next: next.iter().map(|name| Trigger::without_input(node(name), None)).collect(),
            barriers: BTreeMap::new(),
            deferred: Vec::new(),
            tasks: 0,
            writers: Vec::new(),
            subgraph_checkpoints: BTreeMap::new(),
            parent_graphs: BTreeMap::new(),
            versions: Versions::new(),
            event_seq: None,
            metadata: BTreeMap::new(),
        };
        let checkpoint = Checkpoint::new(meta, values.collect());
        self.push(EventKind::Checkpointed(Checkpointed::from(&checkpoint.meta)));
        self.at.insert(self.namespace.clone(), checkpoint.clone());
        self.checkpoints.insert((self.namespace.clone(), id), checkpoint);
    }

    /// Adds the following events in the subgraph that the newest task runs.
    pub(super) fn enter(&mut self, name: &str) {
        self.namespace = self.namespace.for_task(&node(name), &self.task());
    }

    /// Adds the following events in the subgraph that a call of the newest task started.
    pub(super) fn enter_call(&mut self, name: &str, place: &str) {
        self.namespace = self.namespace.for_call(&node(name), &self.task(), place);
    }

    /// Adds the following events in the root graph.
    pub(super) fn leave(&mut self) {
        self.namespace = Namespace::root();
    }

    pub(super) fn begin(&mut self, name: &str) {
        let step = self.at[&self.namespace].meta.step;
        self.begin_at(name, step);
    }

    pub(super) fn begin_at(&mut self, name: &str, step: u32) {
        let base = self.at.get(&self.namespace).map_or(CheckpointId(0), |at| at.meta.id);
        let task = TaskId::derive(&thread(), &self.namespace, base, &node(name), 0);
        self.tasks.push((name.to_owned(), task.clone()));
        let started = TaskStarted { task, node: node(name), step, attempt: 1 };
        self.push(EventKind::TaskStarted(started));
    }

    pub(super) fn task(&self) -> TaskId {
        self.tasks.last().unwrap().1.clone()
    }

    fn node(&self) -> NodeName {
        node(&self.tasks.last().unwrap().0)
    }

    pub(super) fn finish(&mut self, writes: Value) {
        self.finish_with(writes, None);
    }

    fn finish_with(&mut self, writes: Value, child: Option<SubgraphEnd>) {
        let Value::Object(writes) = writes else { panic!("writes are an object") };
        let write = |(name, value): (String, Value)| Write {
            channel: name.parse().unwrap(),
            value,
            overwrite: false,
        };
        self.push(EventKind::TaskFinished(Arc::new(TaskFinished {
            task: self.task(),
            node: self.node(),
            index: 0,
            base: self.at[&self.namespace].meta.id,
            writes: writes.into_iter().map(write).collect(),
            goto: None,
            sends: Vec::new(),
            for_parent: false,
            child,
            cached: false,
            duration_us: 0,
        })));
    }

    pub(super) fn fail(&mut self, retry_in_ms: Option<u64>) {
        self.push(EventKind::TaskFailed(TaskFailed {
            task: self.task(),
            node: self.node(),
            attempt: 1,
            fault: TaskFault::Failure,
            failure: Failure::new("denied", "not allowed"),
            retry_in_ms,
            handler: None,
        }));
    }

    pub(super) fn custom(&mut self, name: &str, data: Value) {
        let name = name.to_owned();
        self.push(EventKind::Custom(Custom { task: self.task(), node: self.node(), name, data }));
    }

    fn progress(&mut self, step: &str, phase: &str) {
        self.custom("progress", json!({ "name": "progress", "step": step, "phase": phase }));
    }

    pub(super) fn ask(&mut self, payload: Value) {
        let task = self.task();
        self.push(EventKind::InterruptRaised(InterruptRaised {
            interrupt: InterruptId::derive(&task, &[], 0),
            task,
            node: self.node(),
            scope: Vec::new(),
            call: 0,
            payload,
            response_schema: None,
            expires_ms: None,
            answered: false,
            elicited: None,
        }));
    }

    pub(super) fn answer(&mut self, answer: Value) {
        let task = self.task();
        let interrupt = InterruptId::derive(&task, &[], 0);
        self.push(EventKind::Answered(Answered { interrupt, task, answer, principal: None }));
    }

    /// Adds deltas of a completion.
    pub(super) fn stream(&mut self, call: u32, deltas: Vec<Delta>) {
        let (task, node) = (self.task(), self.node());
        self.push(EventKind::Streamed(Streamed { task, node, scope: Vec::new(), call, deltas }));
    }

    /// Adds the start of a host call.
    pub(super) fn call(&mut self, call: u32, function: &str) {
        self.call_again(call, function, 0);
    }

    /// Adds a further start of a host call.
    pub(super) fn call_again(&mut self, call: u32, function: &str, again: u64) {
        self.call_started(call, function, again, None);
    }

    /// Adds the start of a tool call.
    pub(super) fn call_tool(&mut self, call: u32, request: Value) {
        self.call_started(call, CallKind::CallTool.name(), 0, Some(request));
    }

    fn call_started(
        &mut self,
        call: u32,
        function: &str,
        start_number: u64,
        request: Option<Value>,
    ) {
        self.push(EventKind::CallStarted(CallStarted {
            task: self.task(),
            scope: Vec::new(),
            call,
            function: function.to_owned(),
            summary: String::new(),
            is_structured: false,
            start_number,
            request,
        }));
    }

    pub(super) fn called(
        &mut self,
        call: u32,
        function: &str,
        request: Value,
        result: Result<Value, Failure>,
    ) {
        self.push(EventKind::Called(Box::new(Called {
            task: self.task(),
            node: self.node(),
            scope: Vec::new(),
            call,
            function: function.to_owned(),
            digest: Digest::of(b""),
            request,
            result,
            started_ms: 0,
            duration_us: 0,
            store_us: 0,
            summary: String::new(),
            tokens: Some(Tokens { input: 3, output: 2 }),
            reused: None,
            batch: call,
        })));
    }
}

/// Returns a completion as the journal contains it.
pub(super) fn answer(parts: &Value) -> Value {
    json!({ "parts": parts, "finish_reason": "stop", "usage": {}, "model": "m" })
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

fn push(state: &mut Value, channel: &str, item: Value) {
    state[channel].as_array_mut().unwrap().push(item);
}
