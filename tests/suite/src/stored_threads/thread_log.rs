//! The record, the run and the log of a thread, like those that an engine writes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::call::CallKind;
use wattle_graph::checkpoint::{
    ChannelValue, Checkpoint, CheckpointMeta, CheckpointSource, Trigger,
};
use wattle_graph::event::{
    CallStarted, Called, Checkpointed, Event, EventKind, RunEnded, RunReason, RunStarted,
    RunStatus, TaskFinished, TaskStarted, Write,
};
use wattle_graph::failure::Failure;
use wattle_graph::id::{
    ChannelName, CheckpointId, Digest, IdError, Namespace, NodeName, TaskId, ThreadId,
};
use wattle_run::meter::model_usage::ModelUsage;
use wattle_run::ports::store::{
    Batch, EncodedEvents, RecoveryCount, RunOptions, RunRecord, ThreadFailure, ThreadRecord,
    ThreadStatus,
};

use super::thread::StoredThread;

/// Bytes of the text of a message.
const MESSAGE_BYTES: usize = 300;

/// Number of events after which a batch is written.
const BATCH_EVENTS: usize = 100;

/// The checkpoint of the input.
const INPUT: CheckpointId = CheckpointId(1);

/// The checkpoint of the result.
const RESULT: CheckpointId = CheckpointId(2);

/// Number of events before those of the first host call.
const EVENTS_BEFORE_CALLS: u64 = 3;

/// Number of events after those of the last host call.
const EVENTS_AFTER_CALLS: u64 = 3;

/// Returns the number of events of a run with a number of host calls, which must not be zero.
pub fn events_of_run(calls: u32) -> u64 {
    EVENTS_BEFORE_CALLS + 2 * u64::from(calls) + EVENTS_AFTER_CALLS
}

/// Returns the sequence number of the event with the result of a host call.
pub fn seq_of_result(call: u32) -> u64 {
    EVENTS_BEFORE_CALLS + 2 * (u64::from(call) + 1)
}

/// Returns pseudorandom letters, so that compression gives no store an advantage.
pub fn text(length: usize, seed: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut state = seed + 1;
    let letter = |_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(LETTERS[(state >> 58) as usize])
    };
    (0..length).map(letter).collect()
}

/// A thread and the names in its log.
pub(super) struct ThreadLog {
    stored: StoredThread,
    version: Digest,
    node: NodeName,
    task: TaskId,
    channel: ChannelName,
    /// Sequence number of the newest event.
    seq: u64,
}

impl ThreadLog {
    /// Creates the log of a thread.
    pub(super) fn new(stored: StoredThread) -> Result<Self, IdError> {
        let node = NodeName::new("respond")?;
        let version = format!("{}/{}", stored.app, stored.graph);
        Ok(Self {
            version: Digest::of(version.as_bytes()),
            task: TaskId::derive(&stored.thread, &Namespace::root(), INPUT, &node, 0),
            channel: ChannelName::new("messages")?,
            stored,
            node,
            seq: 0,
        })
    }

    /// Returns the thread.
    pub(super) fn thread(&self) -> &ThreadId {
        &self.stored.thread
    }

    /// Returns the batches of the thread, in order.
    pub(super) fn into_batches(mut self) -> Vec<Batch> {
        let mut kinds = self.begin();
        if !self.has_task() {
            kinds.push(self.run_ended());
        }
        let begin = Batch {
            record: Some(self.record()),
            run: Some(self.run_record()),
            events: self.number(kinds),
            checkpoint: Some(self.checkpoint(INPUT)),
            ..Batch::default()
        };
        if !self.has_task() {
            return vec![begin];
        }
        let (mut batches, mut kinds) = (vec![begin], Vec::new());
        for call in 0..self.stored.calls {
            kinds.extend(self.call(call));
            if kinds.len() >= BATCH_EVENTS {
                let events = self.number(std::mem::take(&mut kinds));
                batches.push(Batch { base: Some(INPUT), events, ..Batch::default() });
            }
        }
        kinds.extend(self.end());
        batches.push(Batch {
            base: Some(INPUT),
            events: self.number(kinds),
            checkpoint: Some(self.checkpoint(RESULT)),
            ..Batch::default()
        });
        batches
    }

    /// Returns whether the run has a task, which makes the host calls.
    fn has_task(&self) -> bool {
        self.stored.calls > 0
    }

    fn record(&self) -> ThreadRecord {
        let stored = self.stored.clone();
        ThreadRecord {
            app: stored.app,
            graph: stored.graph,
            version: self.version,
            status: stored.status,
            failure: self.failure().as_ref().map(ThreadFailure::from),
            run: Some(stored.run),
            updated_ms: stored.updated_ms,
            tenant: stored.tenant,
            context: stored.context,
            metadata: stored.metadata,
            incarnation: stored.incarnation,
            ..ThreadRecord::unbound(stored.thread, stored.created_ms)
        }
    }

    fn run_record(&self) -> RunRecord {
        let StoredThread { created_ms, updated_ms, .. } = self.stored;
        RunRecord {
            id: self.stored.run.clone(),
            thread: self.stored.thread.clone(),
            first_seq: 1,
            status: self.run_status(),
            failure: self.failure(),
            created_ms: Some(created_ms),
            started_ms: created_ms,
            ended_ms: Some(updated_ms),
            last_checkpoint: None,
            reopen: None,
            options: RunOptions::default(),
            first_step: Some(0),
            origin: None,
            spec: None,
            usage: ModelUsage::default(),
            recovery_count: RecoveryCount::default(),
        }
    }

    fn run_status(&self) -> RunStatus {
        match self.stored.status {
            ThreadStatus::Idle => RunStatus::Completed,
            ThreadStatus::Running => RunStatus::Running,
            ThreadStatus::Interrupted => RunStatus::Interrupted,
            ThreadStatus::Error => RunStatus::Failed,
        }
    }

    fn failure(&self) -> Option<Failure> {
        let message = "`http.send` failed: the service `orders.example` sent no valid response";
        self.stored.failure.map(|code| Failure::new(code, message))
    }

    /// Returns the events with their sequence numbers.
    fn number(&mut self, kinds: Vec<EventKind>) -> EncodedEvents {
        let numbered = kinds.into_iter().map(|kind| {
            self.seq += 1;
            Event {
                seq: self.seq,
                at_ms: self.stored.created_ms.saturating_add_unsigned(self.seq),
                run: self.stored.run.clone(),
                namespace: Namespace::root(),
                kind,
            }
        });
        numbered.collect()
    }

    /// Returns the events before the first host call.
    fn begin(&self) -> Vec<EventKind> {
        let started = RunStarted {
            graph: self.stored.graph.clone(),
            digest: self.version,
            reason: RunReason::Input,
            context: Value::Null,
            principal: None,
        };
        let mut kinds = vec![
            EventKind::RunStarted(started),
            EventKind::Checkpointed(Checkpointed::from(&self.checkpoint_meta(INPUT))),
        ];
        if self.has_task() {
            let (task, node) = (self.task.clone(), self.node.clone());
            kinds.push(EventKind::TaskStarted(TaskStarted { task, node, step: 0, attempt: 1 }));
        }
        kinds
    }

    /// Returns the events of a host call.
    fn call(&self, call: u32) -> [EventKind; 2] {
        let function = CallKind::SendHttp.name();
        let url = format!("https://orders.example/v1/orders/{call}");
        let summary = format!("GET {url}");
        let request = json!({ "method": "GET", "url": url });
        let body = text(self.stored.result_bytes, u64::from(call));
        let started = CallStarted {
            task: self.task.clone(),
            scope: Vec::new(),
            call,
            function: function.to_owned(),
            summary: summary.clone(),
            is_structured: false,
            start_number: 0,
            request: None,
        };
        let called = Called {
            task: self.task.clone(),
            node: self.node.clone(),
            scope: Vec::new(),
            call,
            function: function.to_owned(),
            digest: Digest::of(request.to_string().as_bytes()),
            request,
            result: Ok(json!({ "status": 200, "headers": [], "body": body })),
            started_ms: self.stored.created_ms + i64::from(call),
            duration_us: 40_000,
            store_us: 0,
            summary,
            tokens: None,
            reused: None,
            batch: call,
        };
        [EventKind::CallStarted(started), EventKind::Called(Box::new(called))]
    }

    /// Returns the events after the last host call.
    fn end(&self) -> Vec<EventKind> {
        let write =
            Write { channel: self.channel.clone(), value: self.message("ai"), overwrite: false };
        let finished = TaskFinished {
            task: self.task.clone(),
            node: self.node.clone(),
            index: 0,
            base: INPUT,
            writes: vec![write],
            goto: None,
            sends: Vec::new(),
            for_parent: false,
            child: None,
            cached: false,
            duration_us: 50_000,
        };
        vec![
            EventKind::TaskFinished(finished.into()),
            EventKind::Checkpointed(Checkpointed::from(&self.checkpoint_meta(RESULT))),
            self.run_ended(),
        ]
    }

    fn run_ended(&self) -> EventKind {
        EventKind::RunEnded(RunEnded {
            status: self.run_status(),
            failure: self.failure(),
            drained: false,
            principal: None,
            store_us: 0,
        })
    }

    fn checkpoint(&self, id: CheckpointId) -> Checkpoint {
        let kinds: &[&str] = if id == INPUT { &["human"] } else { &["human", "ai"] };
        let messages: Vec<Value> = kinds.iter().map(|kind| self.message(kind)).collect();
        let value = ChannelValue::from(Value::Array(messages));
        Checkpoint::new(self.checkpoint_meta(id), [(self.channel.clone(), value)].into())
    }

    fn checkpoint_meta(&self, id: CheckpointId) -> CheckpointMeta {
        let is_input = id == INPUT;
        let next = Trigger::without_input(self.node.clone(), None);
        CheckpointMeta {
            id,
            parent: (!is_input).then_some(INPUT),
            namespace: Namespace::root(),
            step: u32::from(!is_input),
            source: if is_input { CheckpointSource::Input } else { CheckpointSource::Loop },
            run: self.stored.run.clone(),
            at_ms: self.stored.updated_ms,
            version: Some(self.version),
            next: if is_input && self.has_task() { vec![next] } else { Vec::new() },
            barriers: BTreeMap::new(),
            deferred: Vec::new(),
            tasks: u64::from(!is_input),
            writers: if is_input { Vec::new() } else { vec![self.node.clone()] },
            subgraph_checkpoints: BTreeMap::new(),
            parent_graphs: BTreeMap::new(),
            versions: [(self.channel.clone(), id)].into(),
            event_seq: None,
            metadata: BTreeMap::new(),
        }
    }

    fn message(&self, kind: &str) -> Value {
        let number = self.stored.seed;
        let seed = 2 * u64::from(number) + u64::from(kind == "ai");
        let content = text(MESSAGE_BYTES, seed);
        json!({ "type": kind, "id": format!("{kind}-{number}"), "content": content })
    }
}
