//! Builds the outline of an event.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use wattle_graph::call::CallKind;
use wattle_graph::checkpoint::TakenCase;
use wattle_graph::event::{
    Answered, CallStarted, Called, Checkpointed, Custom, Decision, Event, EventKind, Forked,
    InterruptRaised, Log, Migrated, Progress, Reopened, RunEnded, RunStarted, Settled, Streamed,
    SubgraphEnd, TaskFailed, TaskFinished, TaskStarted,
};
use wattle_graph::failure::Failure;
use wattle_graph::id::Digest;
use wattle_graph::json_text;
use wattle_graph::llm::{Attempt, Delta};
use wattle_graph::principal::Principal;

use super::{
    DecisionOutline, DeltaOutline, EventOutline, EventOutlineKind, Excerpt, FailureOutline,
    ForkedCallOutline, SendOutline, SubgraphEndOutline, TakenCaseOutline, TokensOutline,
    WriteOutline,
};
use crate::limit::{OUTLINE_TEXT_BYTES, OUTLINE_VALUE_BYTES};
use crate::trace::PrincipalTrace;

/// Follows a truncated text.
const ELLIPSIS: char = '…';

impl From<&Event> for EventOutline {
    fn from(event: &Event) -> Self {
        Self {
            seq: event.seq,
            at_ms: event.at_ms,
            run: event.run.to_string(),
            namespace: event.namespace.as_str().to_owned(),
            kind: EventOutlineKind::from(&event.kind),
        }
    }
}

impl From<&EventKind> for EventOutlineKind {
    fn from(kind: &EventKind) -> Self {
        match kind {
            EventKind::RunStarted(started) => run_started(started),
            EventKind::RunEnded(ended) => run_ended(ended),
            EventKind::TaskStarted(started) => task_started(started),
            EventKind::TaskFinished(finished) => task_finished(finished),
            EventKind::TaskFailed(failed) => task_failed(failed),
            EventKind::CallStarted(started) => call_started(started),
            EventKind::Streamed(streamed) => self::streamed(streamed),
            EventKind::Called(called) => self::called(called),
            EventKind::InterruptRaised(raised) => interrupt_raised(raised),
            EventKind::Answered(answered) => self::answered(answered),
            EventKind::Checkpointed(made) => checkpointed(made),
            EventKind::Reopened(reopened) => self::reopened(reopened),
            EventKind::Forked(forked) => self::forked(forked),
            EventKind::Settled(settled) => self::settled(settled),
            EventKind::Migrated(migrated) => self::migrated(migrated),
            EventKind::Custom(custom) => self::custom(custom),
            EventKind::Progress(progress) => self::progress(progress),
            EventKind::Log(log) => self::log(log),
            _ => Self::Other,
        }
    }
}

fn run_started(started: &RunStarted) -> EventOutlineKind {
    EventOutlineKind::RunStarted {
        graph: started.graph.to_string(),
        digest: started.digest.to_hex(),
        reason: started.reason,
        context_bytes: (!started.context.is_null()).then(|| bytes(&started.context)),
        principal: principal(started.principal.as_ref()),
    }
}

fn run_ended(ended: &RunEnded) -> EventOutlineKind {
    EventOutlineKind::RunEnded {
        status: ended.status,
        failure: ended.failure.as_ref().map(failure),
        drained: ended.drained,
        principal: principal(ended.principal.as_ref()),
        store_us: ended.store_us,
    }
}

fn task_started(started: &TaskStarted) -> EventOutlineKind {
    EventOutlineKind::TaskStarted {
        task: started.task.to_string(),
        node: started.node.to_string(),
        step: started.step,
        attempt: started.attempt,
    }
}

fn task_finished(finished: &TaskFinished) -> EventOutlineKind {
    let written = finished.writes.iter().map(|write| WriteOutline {
        channel: write.channel.to_string(),
        bytes: bytes(&write.value),
        overwrite: write.overwrite,
    });
    let sends = finished
        .sends
        .iter()
        .map(|send| SendOutline { node: send.node.to_string(), bytes: bytes(&send.input) });
    EventOutlineKind::TaskFinished {
        task: finished.task.to_string(),
        node: finished.node.to_string(),
        index: finished.index,
        base: finished.base.0,
        written: written.collect(),
        goto: finished.goto.as_deref().map(texts),
        sends: sends.collect(),
        for_parent: finished.for_parent,
        child: finished.child.as_ref().map(subgraph_end),
        cached: finished.cached,
        duration_us: finished.duration_us,
    }
}

fn subgraph_end(end: &SubgraphEnd) -> SubgraphEndOutline {
    SubgraphEndOutline {
        namespace: end.namespace.as_str().to_owned(),
        checkpoint: end.checkpoint.map(|checkpoint| checkpoint.0),
        keeps: end.persists,
    }
}

fn task_failed(failed: &TaskFailed) -> EventOutlineKind {
    EventOutlineKind::TaskFailed {
        task: failed.task.to_string(),
        node: failed.node.to_string(),
        attempt: failed.attempt,
        fault: failed.fault,
        failure: failure(&failed.failure),
        retry_in_ms: failed.retry_in_ms,
        handler: failed.handler.as_ref().map(ToString::to_string),
    }
}

fn call_started(started: &CallStarted) -> EventOutlineKind {
    EventOutlineKind::CallStarted {
        task: started.task.to_string(),
        scope: started.scope.clone(),
        call: started.call,
        function: started.function.clone(),
        summary: text(&started.summary),
        document: started.is_structured,
        again: started.start_number,
        request_bytes: started.request.as_ref().map(bytes),
    }
}

fn streamed(streamed: &Streamed) -> EventOutlineKind {
    EventOutlineKind::Streamed {
        task: streamed.task.to_string(),
        node: streamed.node.to_string(),
        scope: streamed.scope.clone(),
        call: streamed.call,
        deltas: streamed.deltas.iter().map(delta).collect(),
    }
}

fn delta(delta: &Delta) -> DeltaOutline {
    match delta.clone() {
        Delta::Text { text } => DeltaOutline::Text { text },
        Delta::Reasoning { text } => DeltaOutline::Reasoning { text },
        Delta::ToolCall { index, id, name, arguments } => {
            DeltaOutline::ToolCall { index, id, name, arguments }
        }
        Delta::Restart => DeltaOutline::Restart,
        _ => DeltaOutline::Other,
    }
}

fn called(called: &Called) -> EventOutlineKind {
    let source = CompletionSource::of(called);
    let output = output_digest(called);
    EventOutlineKind::Called {
        task: called.task.to_string(),
        node: called.node.to_string(),
        scope: called.scope.clone(),
        call: called.call,
        batch: called.batch,
        function: called.function.clone(),
        digest: called.digest.to_hex(),
        summary: text(&called.summary),
        started_ms: called.started_ms,
        duration_us: called.duration_us,
        store_us: called.store_us,
        request_bytes: bytes(&called.request),
        result_bytes: output.map(|(_, bytes)| bytes),
        result_digest: output.map(|(digest, _)| digest.to_hex()),
        ok: called.result.is_ok(),
        failure: called.result.as_ref().err().map(failure),
        provider: source.as_ref().and_then(CompletionSource::provider),
        tries: source.as_ref().and_then(CompletionSource::tries),
        model: source.map(|source| source.model),
        tokens: called
            .tokens
            .map(|tokens| TokensOutline { input: tokens.input, output: tokens.output }),
        // The log has no prices.
        cost: None,
        reused: called.reused,
    }
}

/// Returns the digest and the size of the output of a call; `None` for a failed call. The digest of
/// a completion is that of [`ComparedCompletion`].
fn output_digest(called: &Called) -> Option<(Digest, u64)> {
    let output = called.result.as_ref().ok()?;
    match output {
        Value::Object(fields) if called.kind().is_some_and(CallKind::is_completion) => {
            let (digest, _) = json_text::digest(&ComparedCompletion(fields)).ok()?;
            Some((digest, bytes(output)))
        }
        _ => json_text::digest(output).ok(),
    }
}

/// The fields of a completion without the ids in which equal completions of two runs differ: its
/// own id, which is derived from the task, and the ids of its tool calls, which the provider
/// assigns.
struct ComparedCompletion<'f>(&'f Map<String, Value>);

impl Serialize for ComparedCompletion<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let compared = self.0.iter().filter(|(name, _)| *name != "id").map(|(name, value)| {
            let field = match value {
                Value::Array(parts) if name == "parts" => {
                    ComparedField::Parts(parts.iter().map(Into::into).collect())
                }
                _ => ComparedField::Other(value),
            };
            (name, field)
        });
        serializer.collect_map(compared)
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum ComparedField<'f> {
    Parts(Vec<ComparedPart<'f>>),
    Other(&'f Value),
}

#[derive(Serialize)]
#[serde(untagged)]
enum ComparedPart<'f> {
    ToolCall { tool_call: WithoutId<'f> },
    Other(&'f Value),
}

impl<'f> From<&'f Value> for ComparedPart<'f> {
    fn from(part: &'f Value) -> Self {
        let fields = part.as_object().filter(|fields| fields.len() == 1);
        let call = fields.and_then(|fields| fields.get("tool_call")?.as_object());
        call.map_or(Self::Other(part), |call| Self::ToolCall { tool_call: WithoutId(call) })
    }
}

/// The fields of an object without its id.
struct WithoutId<'f>(&'f Map<String, Value>);

impl Serialize for WithoutId<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().filter(|(name, _)| *name != "id"))
    }
}

/// The fields of a completion that name its model and providers. Other fields are not decoded.
#[derive(Deserialize)]
struct CompletionSource {
    model: String,
    #[serde(default)]
    attempts: Vec<Attempt>,
}

impl CompletionSource {
    fn of(called: &Called) -> Option<Self> {
        called.kind().filter(|kind| kind.is_completion())?;
        Self::deserialize(called.result.as_ref().ok()?).ok()
    }

    fn provider(&self) -> Option<String> {
        self.attempts.last().map(|attempt| attempt.provider.clone())
    }

    /// Returns the number of requests; `None` if an older host wrote the log without this number.
    fn tries(&self) -> Option<u32> {
        let tries = self.attempts.iter().map(|attempt| attempt.tries);
        (!self.attempts.is_empty()).then(|| tries.fold(0, u32::saturating_add))
    }
}

/// Converts a raised interrupt. Omits the opaque state of an elicitation, which can be a secret of
/// an MCP server.
fn interrupt_raised(raised: &InterruptRaised) -> EventOutlineKind {
    EventOutlineKind::InterruptRaised {
        interrupt: raised.interrupt.to_string(),
        task: raised.task.to_string(),
        node: raised.node.to_string(),
        scope: raised.scope.clone(),
        call: raised.call,
        payload: excerpt(&raised.payload),
        response_schema: raised.response_schema.as_ref().map(excerpt),
        expires_ms: raised.expires_ms,
        answered: raised.answered,
    }
}

fn answered(answered: &Answered) -> EventOutlineKind {
    EventOutlineKind::Answered {
        interrupt: answered.interrupt.to_string(),
        task: answered.task.to_string(),
        answer: excerpt(&answered.answer),
        principal: principal(answered.principal.as_ref()),
    }
}

fn checkpointed(made: &Checkpointed) -> EventOutlineKind {
    EventOutlineKind::Checkpointed {
        checkpoint: made.checkpoint.0,
        step: made.step,
        source: made.source,
        changed: texts(&made.changed),
        next: texts(&made.next),
        taken: made.taken.iter().map(taken_case).collect(),
        principal: principal(made.principal.as_ref()),
    }
}

fn taken_case(taken: &TakenCase) -> TakenCaseOutline {
    TakenCaseOutline { branch: taken.branch.clone(), case: taken.case }
}

fn reopened(reopened: &Reopened) -> EventOutlineKind {
    EventOutlineKind::Reopened {
        to: reopened.to.0,
        interrupts: texts(&reopened.interrupts),
        tasks: texts(&reopened.tasks),
        failure: reopened.failure.as_ref().map(failure),
    }
}

fn forked(forked: &Forked) -> EventOutlineKind {
    let call = forked.call.as_ref().map(|call| ForkedCallOutline {
        task: call.task.to_string(),
        scope: call.scope.clone(),
        call: call.call,
        seq: call.seq,
    });
    EventOutlineKind::Forked {
        from: forked.from.0,
        call,
        principal: principal(forked.principal.as_ref()),
    }
}

fn settled(settled: &Settled) -> EventOutlineKind {
    EventOutlineKind::Settled {
        task: settled.task.to_string(),
        scope: settled.scope.clone(),
        call: settled.call,
        decision: decision(&settled.decision),
        by: text(&settled.by),
        principal: principal(settled.principal.as_ref()),
    }
}

fn decision(decision: &Decision) -> DecisionOutline {
    let (kind, answer) = match decision {
        Decision::Retry => ("retry", None),
        Decision::Answer { answer } => ("answer", Some(excerpt(answer))),
        Decision::Fail => ("fail", None),
    };
    DecisionOutline { kind: kind.to_owned(), answer }
}

fn migrated(migrated: &Migrated) -> EventOutlineKind {
    EventOutlineKind::Migrated {
        from: migrated.from.to_hex(),
        to: migrated.to.to_hex(),
        principal: principal(migrated.principal.as_ref()),
    }
}

fn custom(custom: &Custom) -> EventOutlineKind {
    EventOutlineKind::Custom {
        task: custom.task.to_string(),
        node: custom.node.to_string(),
        name: text(&custom.name),
        data: excerpt(&custom.data),
    }
}

fn progress(progress: &Progress) -> EventOutlineKind {
    EventOutlineKind::Progress {
        task: progress.task.to_string(),
        node: progress.node.to_string(),
        message: text(&progress.message),
        fraction: progress.fraction,
    }
}

fn log(log: &Log) -> EventOutlineKind {
    EventOutlineKind::Log {
        task: log.task.to_string(),
        node: log.node.to_string(),
        level: log.level.clone(),
        message: text(&log.message),
        fields: (!log.fields.is_null()).then(|| excerpt(&log.fields)),
    }
}

fn principal(principal: Option<&Principal>) -> Option<PrincipalTrace> {
    principal.map(Into::into)
}

fn failure(failure: &Failure) -> FailureOutline {
    FailureOutline { code: text(&failure.code), message: text(&failure.message) }
}

fn excerpt(value: &Value) -> Excerpt {
    let bytes = bytes(value);
    Excerpt { bytes, value: (bytes <= OUTLINE_VALUE_BYTES).then(|| value.clone()) }
}

/// Returns the length of a value as JSON, in bytes. Serialization cannot fail, because all keys in
/// the log are strings.
fn bytes<T: Serialize>(value: &T) -> u64 {
    json_text::length(value).unwrap_or_default()
}

fn texts(ids: &[impl ToString]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// Returns a text, truncated after [`OUTLINE_TEXT_BYTES`].
fn text(text: &str) -> String {
    if text.len() <= OUTLINE_TEXT_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(OUTLINE_TEXT_BYTES - ELLIPSIS.len_utf8());
    format!("{}{ELLIPSIS}", &text[..end])
}
