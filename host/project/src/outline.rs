//! Outlines of events: what happened, when, and how large it was, without requests, results and
//! other large values.
//!
//! A client that draws the timeline of a run reads thousands of events, but shows only the requests
//! of a few calls. Such a client reads outlines, and reads a whole event on demand.

mod build;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{RunReason, RunStatus, TaskFault};
use wattle_graph::omit::is_zero;

use crate::trace::PrincipalTrace;

/// The outline of an event. Later versions may add types and fields.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct EventOutline {
    /// Sequence number of the event in the log of the thread.
    pub seq: u64,
    /// Time of the event, in milliseconds since 1970.
    pub at_ms: i64,
    /// Run of the event.
    pub run: String,
    /// Namespace of the subgraph; absent for the root graph.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Type of the event, with its fields.
    #[serde(flatten)]
    pub kind: EventOutlineKind,
}

/// The type of an event, with the fields of its outline.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventOutlineKind {
    /// A run started or continued.
    RunStarted {
        /// Graph of the run.
        graph: String,
        /// Digest of the graph with its components.
        digest: String,
        /// Why the run started: `input`, `resume`, `recovery`, `retry` or `fork`.
        #[schema(value_type = String)]
        reason: RunReason,
        /// Size of the run context as JSON, in bytes; absent without a context.
        #[serde(skip_serializing_if = "Option::is_none")]
        context_bytes: Option<u64>,
        /// Who requested the run.
        #[serde(skip_serializing_if = "Option::is_none")]
        principal: Option<PrincipalTrace>,
    },
    /// A run ended or was interrupted.
    RunEnded {
        /// `completed`, `interrupted`, `failed` or `cancelled`.
        #[schema(value_type = String)]
        status: RunStatus,
        /// Failure of a failed run.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<FailureOutline>,
        /// True if a drain stopped the run.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        drained: bool,
        /// Who cancelled the run.
        #[serde(skip_serializing_if = "Option::is_none")]
        principal: Option<PrincipalTrace>,
        /// Time for which the run waited for the store between supersteps, since its last start or
        /// recovery, in microseconds; absent if it did not wait.
        #[serde(skip_serializing_if = "is_zero")]
        store_us: u64,
    },
    /// An attempt of a task started.
    TaskStarted {
        /// Id of the task.
        task: String,
        /// Node of the task.
        node: String,
        /// Number of the superstep, from 0.
        step: u32,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// A task finished.
    TaskFinished {
        /// Id of the task.
        task: String,
        /// Node of the task.
        node: String,
        /// Index among the tasks of the node in the superstep.
        index: u32,
        /// Checkpoint at which the task started.
        base: u64,
        /// Writes of the task, in order.
        written: Vec<WriteOutline>,
        /// Nodes that run next in place of the edges.
        #[serde(skip_serializing_if = "Option::is_none")]
        goto: Option<Vec<String>>,
        /// Tasks for the next superstep that the task sends.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        sends: Vec<SendOutline>,
        /// True if the writes, `goto` and sends are for the parent graph.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        for_parent: bool,
        /// End of the subgraph that ran as the task.
        #[serde(skip_serializing_if = "Option::is_none")]
        child: Option<SubgraphEndOutline>,
        /// True if the task was not executed: its outcome comes from the cache or from a fork.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        cached: bool,
        /// Wall time of the last attempt, in microseconds.
        duration_us: u64,
    },
    /// An attempt of a task failed.
    TaskFailed {
        /// Id of the task.
        task: String,
        /// Node of the task.
        node: String,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// `failure`, `trap`, `limit`, `timeout`, `divergence` or `host`.
        #[schema(value_type = String)]
        fault: TaskFault,
        /// The failure.
        failure: FailureOutline,
        /// Milliseconds until the next attempt; absent if there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        retry_in_ms: Option<u64>,
        /// Task of the error handler that runs in place of the task.
        #[serde(skip_serializing_if = "Option::is_none")]
        handler: Option<String>,
    },
    /// A slow host call started.
    CallStarted {
        /// Id of the task.
        task: String,
        /// Numbers of the enclosing tool calls; absent for a call of the node itself.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        scope: Vec<u32>,
        /// Number of the call in its scope.
        call: u32,
        /// Interface and function, such as `llm.complete`.
        function: String,
        /// Description of the call in one line.
        summary: String,
        /// True if the call requests structured output of a model.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        document: bool,
        /// Number of earlier starts of the call by the task.
        #[serde(skip_serializing_if = "is_zero")]
        again: u64,
        /// Size of the request of a tool call as JSON in the log, in bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        request_bytes: Option<u64>,
    },
    /// Deltas of a completion arrived.
    Streamed {
        /// Id of the task.
        task: String,
        /// Node of the task.
        node: String,
        /// Numbers of the enclosing tool calls; absent for a call of the node itself.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        scope: Vec<u32>,
        /// Number of the call in its scope.
        call: u32,
        /// The deltas, in order.
        deltas: Vec<DeltaOutline>,
    },
    /// A host call returned.
    Called {
        /// Id of the task.
        task: String,
        /// Node of the task.
        node: String,
        /// Numbers of the enclosing tool calls; absent for a call of the node itself.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        scope: Vec<u32>,
        /// Number of the call in its scope.
        call: u32,
        /// Number of the first call of the batch; the call's own number outside of a batch.
        batch: u32,
        /// Interface and function, such as `llm.complete`.
        function: String,
        /// Digest of the whole request.
        digest: String,
        /// Description of the call in one line.
        summary: String,
        /// Start of the call, in milliseconds since 1970.
        started_ms: i64,
        /// Duration of the call, in microseconds.
        duration_us: u64,
        /// Time for which the call waited for the store before its start, in microseconds; absent
        /// if it did not wait.
        #[serde(skip_serializing_if = "is_zero")]
        store_us: u64,
        /// Size of the request as JSON in the log, in bytes.
        request_bytes: u64,
        /// Size of the output as JSON, in bytes; absent for a failed call.
        #[serde(skip_serializing_if = "Option::is_none")]
        result_bytes: Option<u64>,
        /// BLAKE3 digest of the output as JSON; absent for a failed call. The digest of a
        /// completion leaves out the `id`, which the host derives from the task, and the ids of
        /// tool calls, which the provider assigns.
        #[serde(skip_serializing_if = "Option::is_none")]
        result_digest: Option<String>,
        /// True if the call succeeded.
        ok: bool,
        /// Failure of a failed call.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<FailureOutline>,
        /// Model that produced the completion.
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Provider of the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        /// Number of requests to models, those to fallbacks included.
        #[serde(skip_serializing_if = "Option::is_none")]
        tries: Option<u32>,
        /// Tokens of a model call.
        #[serde(skip_serializing_if = "Option::is_none")]
        tokens: Option<TokensOutline>,
        /// Cost of the tokens in the currency of the operator's prices; absent if the model has no
        /// price.
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// Sequence number of the journal entry whose result was reused.
        #[serde(skip_serializing_if = "Option::is_none")]
        reused: Option<u64>,
    },
    /// A task raised an interrupt.
    #[serde(rename = "asked")]
    InterruptRaised {
        /// Id of the interrupt.
        interrupt: String,
        /// Id of the task.
        task: String,
        /// Node of the task.
        node: String,
        /// Numbers of the enclosing tool calls; absent for a call of the node itself.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        scope: Vec<u32>,
        /// Number of the call in its scope.
        call: u32,
        /// Payload of the interrupt.
        payload: Excerpt,
        /// JSON Schema of the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        response_schema: Option<Excerpt>,
        /// When the thread expires without an answer, in milliseconds since 1970.
        #[serde(skip_serializing_if = "Option::is_none")]
        expires_ms: Option<i64>,
        /// True if a fork repeats the interrupt together with its answer.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        answered: bool,
    },
    /// An interrupt was answered.
    Answered {
        /// Id of the interrupt.
        interrupt: String,
        /// Task that raised the interrupt.
        task: String,
        /// The answer.
        answer: Excerpt,
        /// Who gave the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        principal: Option<PrincipalTrace>,
    },
    /// All writes of a superstep, an input or an edit were applied.
    Checkpointed {
        /// Number of the checkpoint.
        checkpoint: u64,
        /// Number of the superstep that runs next, from 0.
        step: u32,
        /// `input`, `loop`, `update` or `fork`.
        #[schema(value_type = String)]
        source: CheckpointSource,
        /// Channels that the checkpoint wrote.
        changed: Vec<String>,
        /// Nodes that run next.
        next: Vec<String>,
        /// Cases of branches that were taken, in the order of the branches.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        taken: Vec<TakenCaseOutline>,
        /// Who edited the state.
        #[serde(skip_serializing_if = "Option::is_none")]
        principal: Option<PrincipalTrace>,
    },
    /// The thread returned to a checkpoint, whose interrupts are pending again.
    Reopened {
        /// Number of the checkpoint.
        to: u64,
        /// Interrupts that are pending again.
        interrupts: Vec<String>,
        /// Tasks whose results are discarded.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tasks: Vec<String>,
        /// Failure of the resumed run.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<FailureOutline>,
    },
    /// The thread continued from an earlier checkpoint.
    Forked {
        /// Checkpoint at which the fork starts.
        from: u64,
        /// Host call whose result was replaced.
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<ForkedCallOutline>,
        /// Who forked the thread.
        #[serde(skip_serializing_if = "Option::is_none")]
        principal: Option<PrincipalTrace>,
    },
    /// A call in doubt was settled.
    Settled {
        /// Id of the task.
        task: String,
        /// Numbers of the enclosing tool calls; absent for a call of the node itself.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        scope: Vec<u32>,
        /// Number of the call in its scope.
        call: u32,
        /// The decision.
        decision: DecisionOutline,
        /// `policy`, or a name that the client gave and the host does not verify.
        by: String,
        /// Who decided.
        #[serde(skip_serializing_if = "Option::is_none")]
        principal: Option<PrincipalTrace>,
    },
    /// The thread was moved to another version of its graph and components.
    Migrated {
        /// Digest of the version before.
        from: String,
        /// Digest of the version since then.
        to: String,
        /// Who migrated the thread.
        #[serde(skip_serializing_if = "Option::is_none")]
        principal: Option<PrincipalTrace>,
    },
    /// A guest emitted a custom event.
    Custom {
        /// Id of the task.
        task: String,
        /// Node of the task.
        node: String,
        /// Name of the event, chosen by the guest.
        name: String,
        /// Payload of the event, chosen by the guest.
        data: Excerpt,
    },
    /// A node reported its progress.
    Progress {
        /// Id of the task.
        task: String,
        /// Node of the task.
        node: String,
        /// Description of the progress in one sentence.
        message: String,
        /// Completed fraction, from 0 to 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        fraction: Option<f64>,
    },
    /// A guest wrote a message for the operator.
    Log {
        /// Id of the task.
        task: String,
        /// Node of the task.
        node: String,
        /// `trace`, `debug`, `info`, `warn`, `error`, `stdout` or `stderr`.
        level: String,
        /// Text of the message.
        message: String,
        /// Structured fields of the message.
        #[serde(skip_serializing_if = "Option::is_none")]
        fields: Option<Excerpt>,
    },
    /// An event that has no outline. Clients find the type and the fields in the event itself.
    Other,
}

/// A value, or only its size if the value is large.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Excerpt {
    /// Size of the value as JSON, in bytes.
    pub bytes: u64,
    /// The value; absent if it has more than 4 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// A failure without its details.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FailureOutline {
    /// Stable machine-readable code.
    pub code: String,
    /// Human-readable message, truncated after 4 KiB.
    pub message: String,
}

/// A write to a channel, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct WriteOutline {
    /// The channel.
    pub channel: String,
    /// Size of the value as JSON, in bytes.
    pub bytes: u64,
    /// True if the value replaces the value of the channel, without the reducer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub overwrite: bool,
}

/// A sent task, without its input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SendOutline {
    /// The node that runs.
    pub node: String,
    /// Size of the input as JSON, in bytes.
    pub bytes: u64,
}

/// The end of a subgraph that ran as a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct SubgraphEndOutline {
    /// Namespace of the subgraph.
    pub namespace: String,
    /// Last checkpoint of the subgraph; absent if it is not persisted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
    /// True if the next invocation of the subgraph continues from the checkpoint.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keeps: bool,
}

/// A case of a branch that a superstep or an edit took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TakenCaseOutline {
    /// Name of the branch.
    pub branch: String,
    /// Index of the case in the definition of the branch, from 0.
    pub case: u32,
}

/// A delta of a completion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DeltaOutline {
    /// Text that continues the text before it.
    Text {
        /// The added text.
        text: String,
    },
    /// Reasoning that continues the reasoning before it.
    Reasoning {
        /// The added text.
        text: String,
    },
    /// A tool call. The first delta names the tool, and further deltas continue the arguments of
    /// the call.
    ToolCall {
        /// Index of the tool call in the completion, from 0.
        index: u32,
        /// Id of the tool call, as soon as it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Name of the tool, as soon as it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Fragment of the JSON text of the arguments.
        #[serde(skip_serializing_if = "String::is_empty")]
        arguments: String,
    },
    /// The previous deltas of this call are discarded: the model restarts its output.
    Restart,
    /// A delta of a later version.
    Other,
}

/// Tokens of a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TokensOutline {
    /// Tokens of the prompt.
    pub input: u64,
    /// Tokens of the completion.
    pub output: u64,
}

/// A host call whose result a fork replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ForkedCallOutline {
    /// Id of the task before the fork.
    pub task: String,
    /// Numbers of the enclosing tool calls; absent for a call of the node itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Number of the call in its scope.
    pub call: u32,
    /// Sequence number of the replaced journal entry.
    pub seq: u64,
}

/// The decision about a call in doubt.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct DecisionOutline {
    /// `retry`, `answer` or `fail`.
    pub kind: String,
    /// Output of the call, if the decision is `answer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Excerpt>,
}

#[cfg(test)]
mod tests;
