//! The record, the run and the log of a thread, like those that an engine writes.

use std::collections::BTreeMap;

use anyhow::Result;
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
    AppName, ChannelName, CheckpointId, Digest, GraphName, IdError, Namespace, NodeName, RunId,
    TaskId, ThreadId,
};
use wattle_run::meter::model_usage::ModelUsage;
use wattle_run::ports::store::{
    Batch, EncodedEvents, RecoveryCount, RunOptions, RunRecord, ThreadFailure, ThreadRecord,
    ThreadStatus,
};

use super::plan::{Field, Fields, run_id, tenant_name, thread_id, uuid};
use crate::graphs::text;

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

/// Returns the number of events of a run with a number of host calls.
pub(super) fn events_of_run(calls: u32) -> u64 {
    EVENTS_BEFORE_CALLS + 2 * u64::from(calls) + EVENTS_AFTER_CALLS
}

/// Returns the sequence number of the event with the result of a host call.
pub(super) fn seq_of_result(call: u32) -> u64 {
    EVENTS_BEFORE_CALLS + 2 * (u64::from(call) + 1)
}

/// A thread with one run of one task, which makes some host calls.
pub(super) struct ThreadLog {
    fields: Fields,
    calls: u32,
    result_bytes: usize,
    thread: ThreadId,
    run: RunId,
    graph: GraphName,
    version: Digest,
    node: NodeName,
    task: TaskId,
    channel: ChannelName,
    /// Sequence number of the newest event.
    seq: u64,
}

impl ThreadLog {
    /// Creates the log of a thread.
    pub(super) fn new(fields: Fields, calls: u32, result_bytes: usize) -> Result<Self> {
        let (thread, node) = (thread_id(fields.number)?, NodeName::new("respond")?);
        let version = format!("{}/{}", fields.app, fields.graph);
        Ok(Self {
            fields,
            calls,
            result_bytes,
            run: run_id(fields.number)?,
            graph: GraphName::new(fields.graph)?,
            version: Digest::of(version.as_bytes()),
            task: TaskId::derive(&thread, &Namespace::root(), INPUT, &node, 0),
            channel: ChannelName::new("messages")?,
            thread,
            node,
            seq: 0,
        })
    }

    /// Returns the thread.
    pub(super) fn thread(&self) -> &ThreadId {
        &self.thread
    }

    /// Returns the batches of the thread, in order.
    pub(super) fn into_batches(mut self) -> Result<Vec<Batch>> {
        let begin = Batch {
            record: Some(self.record()?),
            run: Some(self.run_record()),
            events: self.number(self.begin()),
            checkpoint: Some(self.checkpoint(INPUT)),
            ..Batch::default()
        };
        let (mut batches, mut kinds) = (vec![begin], Vec::new());
        for call in 0..self.calls {
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
        Ok(batches)
    }

    fn record(&self) -> Result<ThreadRecord, IdError> {
        let Fields { number, app, status, tenant, created_ms, updated_ms, .. } = self.fields;
        Ok(ThreadRecord {
            app: AppName::new(app)?,
            graph: self.graph.clone(),
            version: self.version,
            status,
            failure: self.failure().as_ref().map(ThreadFailure::from),
            run: Some(self.run.clone()),
            updated_ms,
            tenant: Some(tenant_name(tenant)),
            context: json!({ "locale": "en", "user": format!("user-{tenant}") }),
            metadata: self.metadata(),
            incarnation: Some(RunId::new(uuid(number, Field::Incarnation))?),
            ..ThreadRecord::unbound(self.thread.clone(), created_ms)
        })
    }

    fn metadata(&self) -> BTreeMap<String, Value> {
        let Fields { number, graph, customer, city, .. } = self.fields;
        let fields = [
            ("graph_id", json!(graph)),
            ("assistant_id", json!(uuid(number, Field::Assistant))),
            ("customer_id", json!(customer)),
            ("customer", json!({ "name": format!("Customer {customer}"), "city": city })),
            ("title", json!(format!("Order {number} arrived late and one part is missing"))),
            ("tags", json!(["orders", "mail"])),
        ];
        fields.map(|(name, value)| (name.to_owned(), value)).into()
    }

    fn run_record(&self) -> RunRecord {
        let Fields { created_ms, updated_ms, .. } = self.fields;
        RunRecord {
            id: self.run.clone(),
            thread: self.thread.clone(),
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
        match self.fields.status {
            ThreadStatus::Idle => RunStatus::Completed,
            ThreadStatus::Running => RunStatus::Running,
            ThreadStatus::Interrupted => RunStatus::Interrupted,
            ThreadStatus::Error => RunStatus::Failed,
        }
    }

    fn failure(&self) -> Option<Failure> {
        let message = "`http.send` failed: the service `orders.example` sent no valid response";
        self.fields.failure.map(|code| Failure::new(code, message))
    }

    /// Returns the events with their sequence numbers.
    fn number(&mut self, kinds: Vec<EventKind>) -> EncodedEvents {
        let numbered = kinds.into_iter().map(|kind| {
            self.seq += 1;
            Event {
                seq: self.seq,
                at_ms: self.fields.created_ms.saturating_add_unsigned(self.seq),
                run: self.run.clone(),
                namespace: Namespace::root(),
                kind,
            }
        });
        numbered.collect()
    }

    /// Returns the events before the first host call.
    fn begin(&self) -> Vec<EventKind> {
        let started = RunStarted {
            graph: self.graph.clone(),
            digest: self.version,
            reason: RunReason::Input,
            context: Value::Null,
            principal: None,
        };
        let task =
            TaskStarted { task: self.task.clone(), node: self.node.clone(), step: 0, attempt: 1 };
        vec![
            EventKind::RunStarted(started),
            EventKind::Checkpointed(Checkpointed::from(&self.checkpoint_meta(INPUT))),
            EventKind::TaskStarted(task),
        ]
    }

    /// Returns the events of a host call.
    fn call(&self, call: u32) -> [EventKind; 2] {
        let function = CallKind::SendHttp.name();
        let url = format!("https://orders.example/v1/orders/{call}");
        let summary = format!("GET {url}");
        let request = json!({ "method": "GET", "url": url });
        let body = text(self.result_bytes, u64::from(call));
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
            started_ms: self.fields.created_ms + i64::from(call),
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
        let ended = RunEnded {
            status: self.run_status(),
            failure: self.failure(),
            drained: false,
            principal: None,
            store_us: 0,
        };
        vec![
            EventKind::TaskFinished(finished),
            EventKind::Checkpointed(Checkpointed::from(&self.checkpoint_meta(RESULT))),
            EventKind::RunEnded(ended),
        ]
    }

    fn checkpoint(&self, id: CheckpointId) -> Checkpoint {
        let kinds: &[&str] = if id == INPUT { &["human"] } else { &["human", "ai"] };
        let messages: Vec<Value> = kinds.iter().map(|kind| self.message(kind)).collect();
        let value = ChannelValue::from(Value::Array(messages));
        Checkpoint {
            meta: self.checkpoint_meta(id),
            values: [(self.channel.clone(), value)].into(),
            list_deltas: BTreeMap::new(),
        }
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
            run: self.run.clone(),
            at_ms: self.fields.updated_ms,
            version: Some(self.version),
            next: if is_input { vec![next] } else { Vec::new() },
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
        let number = self.fields.number;
        let seed = 2 * u64::from(number) + u64::from(kind == "ai");
        let content = text(MESSAGE_BYTES, seed);
        json!({ "type": kind, "id": format!("{kind}-{number}"), "content": content })
    }
}
