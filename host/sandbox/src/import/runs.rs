//! `wattle:plugin/runs`: threads and runs of the plugin's own app. The `RunService` of the gate has
//! no access to other apps. A graph that a node starts runs as a subgraph of its task.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{GraphName, NodeName, RunId, ThreadId};
use wattle_run::hostcall::runs::{
    CANCEL, DELETE_THREAD, EVENTS, EndedRun, InterruptView, ListThreads, OnFailure, RESUME,
    ResumeRun, RunOutcome, RunRef, START, StartRun, THREAD, THREADS, ThreadView, UPDATE_THREAD,
    UpdateThread,
};
use wattle_run::limit;
use wattle_run::ports::Caller;
use wattle_run::ports::store::{
    RunOptions, ThreadCursor, ThreadSearchPage, ThreadStatus, ThreadSummary,
};

use crate::bindings::wattle::plugin::runs;
use crate::host_state::HostState;
use crate::import::types::unsupported_case;
use crate::import_error::ImportError;
use crate::json::{CallJson, extra_bytes, to_text};

impl runs::Host for HostState {
    async fn start(&mut self, request: runs::StartRequest) -> Result<runs::RunRef, ImportError> {
        let gate = self.gate(START)?;
        let bytes = json_bytes(&request);
        let convert = |json: CallJson<'_>| into_start(request, gate.caller(), json);
        let request = self.convert(&gate, START, bytes, convert).await?;
        let run = self.off_cpu(gate.start_run(request)).await?;
        Ok(from_run_ref(&run))
    }

    async fn resume(&mut self, request: runs::ResumeRequest) -> Result<runs::RunRef, ImportError> {
        let gate = self.gate(RESUME)?;
        let bytes = request.answers.iter().map(|(_, text)| text.len()).sum();
        let convert = |json: CallJson<'_>| into_resume(request, gate.caller(), json);
        let request = self.convert(&gate, RESUME, bytes, convert).await?;
        let run = self.off_cpu(gate.resume_run(request)).await?;
        Ok(from_run_ref(&run))
    }

    async fn wait(&mut self, run: runs::RunRef) -> Result<runs::EndedRun, ImportError> {
        let gate = self.gate(EndedRun::FUNCTION)?;
        let run = into_run_ref(&run).map_err(|failure| gate.refuse(failure))?;
        let ended = self.off_cpu(gate.wait_run(&run)).await?;
        Ok(from_ended(ended))
    }

    async fn cancel(&mut self, run: runs::RunRef) -> Result<(), ImportError> {
        let gate = self.gate(CANCEL)?;
        let run = into_run_ref(&run).map_err(|failure| gate.refuse(failure))?;
        Ok(self.off_cpu(gate.cancel_run(&run)).await?)
    }

    async fn thread(&mut self, thread_id: String) -> Result<Option<runs::ThreadInfo>, ImportError> {
        let gate = self.gate(THREAD)?;
        let thread = into_thread(&thread_id).map_err(|failure| gate.refuse(failure))?;
        let view = self.off_cpu(gate.thread(&thread)).await?;
        Ok(view.map(from_view))
    }

    async fn delete_thread(&mut self, thread_id: String) -> Result<(), ImportError> {
        let gate = self.gate(DELETE_THREAD)?;
        let thread = into_thread(&thread_id).map_err(|failure| gate.refuse(failure))?;
        Ok(self.off_cpu(gate.delete_thread(&thread)).await?)
    }

    async fn threads(
        &mut self,
        search: runs::ThreadSearch,
    ) -> Result<runs::ThreadPage, ImportError> {
        let gate = self.gate(THREADS)?;
        let bytes = search.metadata.as_ref().map_or(0, String::len);
        let convert = |json: CallJson<'_>| into_list(search, gate.caller(), json);
        let list = self.convert(&gate, THREADS, bytes, convert).await?;
        let page = self.off_cpu(gate.threads(list)).await?;
        Ok(from_page(page))
    }

    async fn update_thread(
        &mut self,
        thread_id: String,
        metadata: String,
        _extra: runs::Extra,
    ) -> Result<(), ImportError> {
        let gate = self.gate(UPDATE_THREAD)?;
        let convert = |json: CallJson<'_>| into_update(&thread_id, &metadata, gate.caller(), json);
        let update = self.convert(&gate, UPDATE_THREAD, metadata.len(), convert).await?;
        Ok(self.off_cpu(gate.update_thread(update)).await?)
    }

    async fn events(
        &mut self,
        thread_id: String,
        after: u64,
        limit: u32,
    ) -> Result<Vec<String>, ImportError> {
        let gate = self.gate(EVENTS)?;
        let thread = into_thread(&thread_id).map_err(|failure| gate.refuse(failure))?;
        let events = self.off_cpu(gate.thread_events(&thread, after, limit as usize)).await?;
        let texts: Result<Vec<String>, _> =
            events.iter().map(|event| serde_json::to_string(&event.shown())).collect();
        Ok(texts.map_err(|error| {
            Failure::internal(format!("cannot encode an event as JSON: {error}"))
        })?)
    }
}

fn invalid(error: &impl ToString) -> Failure {
    Failure::new(code::INVALID, error.to_string())
}

fn into_thread(text: &str) -> Result<ThreadId, Failure> {
    ThreadId::new(text).map_err(|error| invalid(&error))
}

fn into_graph(name: &str) -> Result<GraphName, Failure> {
    GraphName::new(name).map_err(|error| invalid(&error))
}

/// Extension fields of a start request (`extra`).
#[derive(Default, Deserialize)]
#[serde(default)]
struct StartExtra {
    reject_if_interrupted: bool,
}

/// Returns the length of the JSON texts of a start request, in bytes.
fn json_bytes(request: &runs::StartRequest) -> usize {
    let optional = [&request.context, &request.metadata];
    let optional: usize = optional.into_iter().flatten().map(String::len).sum();
    request.input.len() + optional + extra_bytes(&request.extra)
}

/// Converts a start request. An empty graph name refers to the app's only graph.
fn into_start(
    request: runs::StartRequest,
    caller: &Caller,
    json: CallJson<'_>,
) -> Result<StartRun, Failure> {
    let graph = match request.graph.as_str() {
        "" => None,
        name => Some(into_graph(name)?),
    };
    let metadata =
        json.parse_option(request.metadata.as_deref(), "metadata", limit::METADATA_BYTES)?;
    let (context, allowed) = (request.context.as_deref(), limit::MOST_RUN_CONTEXT_BYTES as usize);
    let context = json.parse_option(context, "context", allowed)?;
    let StartExtra { reject_if_interrupted } = json.parse_extra(&request.extra)?;
    Ok(StartRun {
        graph,
        thread: request.thread_id.as_deref().map(into_thread).transpose()?,
        context: context.unwrap_or_default(),
        metadata: into_metadata(START, metadata)?,
        tenant: caller.tenant.clone(),
        reject_if_interrupted,
        ..StartRun::new(
            caller.app.clone(),
            json.parse(&request.input, "input", limit::RUN_JSON_BYTES)?,
        )
    })
}

fn into_metadata(
    function: &str,
    metadata: Option<Value>,
) -> Result<BTreeMap<String, Value>, Failure> {
    match metadata {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(metadata) => into_fields(function, metadata),
    }
}

fn into_fields(function: &str, metadata: Value) -> Result<BTreeMap<String, Value>, Failure> {
    let Value::Object(fields) = metadata else {
        let text = format!("`{function}`: `metadata` is not a JSON object");
        return Err(Failure::new(code::INVALID, text));
    };
    Ok(fields.into_iter().collect())
}

fn into_resume(
    request: runs::ResumeRequest,
    caller: &Caller,
    json: CallJson<'_>,
) -> Result<ResumeRun, Failure> {
    let on_failure = match request.on_failure {
        runs::OnFailure::Keep => OnFailure::Keep,
        runs::OnFailure::Reopen => OnFailure::Reopen,
        runs::OnFailure::Other(case) => return Err(unsupported_case(RESUME, "on-failure", &case)),
    };
    let answers = request
        .answers
        .into_iter()
        .map(|(id, text)| Ok((id, json.parse(&text, "answers", limit::RUN_JSON_BYTES)?)))
        .collect::<Result<_, Failure>>()?;
    Ok(ResumeRun {
        run: None,
        thread: into_thread(&request.thread_id)?,
        answers,
        on_failure,
        app: Some(caller.app.clone()),
        tenant: caller.tenant.clone(),
        options: RunOptions::default(),
        principal: None,
    })
}

fn into_list(
    search: runs::ThreadSearch,
    caller: &Caller,
    json: CallJson<'_>,
) -> Result<ListThreads, Failure> {
    let (text, metadata) = (search.text.unwrap_or_default(), search.metadata.as_deref());
    if text.len() > limit::SEARCH_TEXT_BYTES {
        let (bytes, allowed) = (text.len(), limit::SEARCH_TEXT_BYTES);
        let text = format!("`{THREADS}`: `text` has {bytes} bytes; the limit is {allowed}");
        return Err(Failure::new(code::INVALID, text));
    }
    let metadata = json.parse_option(metadata, "metadata", limit::METADATA_BYTES)?;
    let unknown = || {
        let text = format!("`{THREADS}`: `after` must be the `next` of another page of this list");
        Failure::new(code::INVALID, text)
    };
    let parse = |text: String| ThreadCursor::parse(&text).ok_or_else(unknown);
    Ok(ListThreads {
        app: caller.app.clone(),
        tenant: caller.tenant.clone(),
        graph: search.graph.as_deref().map(into_graph).transpose()?,
        text: Some(text).filter(|text| !text.is_empty()),
        metadata: into_metadata(THREADS, metadata)?,
        after: search.after.map(parse).transpose()?,
        limit: search.limit as usize,
    })
}

fn into_update(
    thread_id: &str,
    metadata: &str,
    caller: &Caller,
    json: CallJson<'_>,
) -> Result<UpdateThread, Failure> {
    let metadata = json.parse(metadata, "metadata", limit::METADATA_BYTES)?;
    Ok(UpdateThread {
        thread: into_thread(thread_id)?,
        app: Some(caller.app.clone()),
        tenant: caller.tenant.clone(),
        metadata: into_fields(UPDATE_THREAD, metadata)?,
        ttl: None,
    })
}

fn into_run_ref(run: &runs::RunRef) -> Result<RunRef, Failure> {
    Ok(RunRef {
        thread: into_thread(&run.thread_id)?,
        run: RunId::new(&run.run_id).map_err(|error| invalid(&error))?,
    })
}

fn from_run_ref(run: &RunRef) -> runs::RunRef {
    runs::RunRef { thread_id: run.thread.to_string(), run_id: run.run.to_string() }
}

fn from_ended(ended: EndedRun) -> runs::EndedRun {
    let outcome = match ended.outcome {
        RunOutcome::Completed => runs::RunResult::Completed,
        RunOutcome::Interrupted { interrupts, .. } => {
            runs::RunResult::Interrupted(interrupts.into_iter().map(from_interrupt).collect())
        }
        RunOutcome::Failed { failure } => runs::RunResult::Failed(failure.into()),
        RunOutcome::Cancelled => runs::RunResult::Cancelled,
    };
    runs::EndedRun { run: from_run_ref(&ended.run), outcome, state: to_text(&ended.state) }
}

fn from_interrupt(question: InterruptView) -> runs::InterruptInfo {
    runs::InterruptInfo {
        id: question.id,
        node: question.node.into(),
        payload: to_text(&question.payload),
        response_schema: question.response_schema.as_ref().map(to_text),
        asked_ms: question.asked_ms,
        expires_ms: question.expires_ms,
    }
}

fn status_name(status: ThreadStatus) -> String {
    match status {
        ThreadStatus::Idle => "idle",
        ThreadStatus::Running => "running",
        ThreadStatus::Interrupted => "interrupted",
        ThreadStatus::Error => "error",
    }
    .to_owned()
}

fn from_page(page: ThreadSearchPage) -> runs::ThreadPage {
    runs::ThreadPage {
        threads: page.items.into_iter().map(from_summary).collect(),
        next: page.next.map(|next| next.to_string()),
    }
}

fn from_summary(thread: ThreadSummary) -> runs::ThreadSummary {
    let metadata = Value::Object(thread.metadata.into_iter().collect());
    runs::ThreadSummary {
        thread_id: thread.id.into(),
        graph: thread.graph.into(),
        status: status_name(thread.status),
        run_id: thread.run.map(Into::into),
        created_ms: thread.created_ms,
        updated_ms: thread.updated_ms,
        metadata: to_text(&metadata),
        extra: extra_fields(None, thread.expires_ms, thread.failure.as_ref()),
    }
}

fn from_view(view: ThreadView) -> runs::ThreadInfo {
    let metadata = Value::Object(view.metadata.into_iter().collect());
    runs::ThreadInfo {
        thread_id: view.thread.into(),
        graph: view.graph.into(),
        status: status_name(view.status),
        state: to_text(&view.state),
        interrupts: view.interrupts.into_iter().map(from_interrupt).collect(),
        run_id: view.run.map(Into::into),
        created_ms: view.created_ms,
        updated_ms: view.updated_ms,
        metadata: to_text(&metadata),
        extra: extra_fields(Some(&view.next), view.expires_ms, view.failure.as_ref()),
    }
}

/// Returns the extension fields of a thread (`extra`): the nodes that run next, which lists omit,
/// the time of expiry and the failure.
fn extra_fields(
    next: Option<&[NodeName]>,
    expires_ms: Option<i64>,
    failure: Option<&impl Serialize>,
) -> Vec<(String, String)> {
    let mut extra = Vec::new();
    if let Some(next) = next {
        extra.push(("next".to_owned(), serde_json::json!(next).to_string()));
    }
    if let Some(expires_ms) = expires_ms {
        extra.push(("expires-ms".to_owned(), expires_ms.to_string()));
    }
    if let Some(failure) = failure {
        extra.push(("failure".to_owned(), serde_json::json!(failure).to_string()));
    }
    extra
}

#[cfg(test)]
mod tests {
    use wattle_graph::id::{AppName, PluginName};
    use wattle_run::caller_id::CallerId;

    use super::*;
    use crate::json;

    fn caller() -> Caller {
        let (app, plugin) = (AppName::new("app").unwrap(), PluginName::new("p").unwrap());
        Caller { app, plugin, tenant: None, owner: CallerId::default() }
    }

    fn search() -> runs::ThreadSearch {
        runs::ThreadSearch {
            graph: None,
            text: None,
            metadata: None,
            after: None,
            limit: 1,
            extra: Vec::new(),
        }
    }

    fn start_request() -> runs::StartRequest {
        runs::StartRequest {
            graph: String::new(),
            input: "{}".into(),
            thread_id: None,
            context: None,
            metadata: None,
            extra: Vec::new(),
        }
    }

    fn start(request: runs::StartRequest) -> Result<StartRun, Failure> {
        json::of_call(START, |json| into_start(request, &caller(), json))
    }

    fn list(search: runs::ThreadSearch) -> Result<ListThreads, Failure> {
        json::of_call(THREADS, |json| into_list(search, &caller(), json))
    }

    fn update(metadata: &str) -> Result<UpdateThread, Failure> {
        json::of_call(UPDATE_THREAD, |json| into_update("t", metadata, &caller(), json))
    }

    #[test]
    fn start_rejects_interrupted_threads_on_request() {
        let start_with = |extra: &[(&str, &str)]| {
            let extra = extra.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
            start(runs::StartRequest { extra: extra.collect(), ..start_request() })
        };
        for (extra, rejects) in [
            (&[][..], false),
            (&[("unknown", "1")][..], false),
            (&[("reject_if_interrupted", "false")][..], false),
            (&[("reject_if_interrupted", "true")][..], true),
        ] {
            assert_eq!(start_with(extra).unwrap().reject_if_interrupted, rejects, "{extra:?}");
        }
        let failure = start_with(&[("reject_if_interrupted", "\"yes\"")]).unwrap_err();
        assert_eq!(failure.code, code::INVALID);
        assert!(failure.message.contains("`runs.start`"), "{failure}");
    }

    /// The conversion allows the largest cap that an operator can configure. The engine checks the
    /// configured cap.
    #[test]
    fn contexts_are_parsed_up_to_the_largest_cap() {
        let start_with = |bytes: usize| {
            let context = Some(format!("\"{}\"", "x".repeat(bytes - 2)));
            start(runs::StartRequest { context, ..start_request() })
        };
        let most = limit::MOST_RUN_CONTEXT_BYTES as usize;
        assert!(start_with(most).is_ok());
        let refused = start_with(most + 1).unwrap_err();
        assert_eq!(refused.details.unwrap()["limit"], "json_bytes");
    }

    #[test]
    fn conditions_of_lists_are_checked() {
        let text = |bytes: usize| Some("x".repeat(bytes));
        for (field, search) in [
            ("text", runs::ThreadSearch { text: text(limit::SEARCH_TEXT_BYTES + 1), ..search() }),
            ("after", runs::ThreadSearch { after: text(3), ..search() }),
            ("metadata", runs::ThreadSearch { metadata: Some("[]".into()), ..search() }),
            ("metadata", runs::ThreadSearch { metadata: text(1), ..search() }),
        ] {
            let failure = list(search).unwrap_err();
            assert_eq!(failure.code, code::INVALID, "{field}");
            assert!(failure.message.contains(&format!("`runs.threads`: `{field}`")), "{failure}");
        }
        let longest = runs::ThreadSearch { text: text(limit::SEARCH_TEXT_BYTES), ..search() };
        assert!(list(longest).unwrap().text.is_some());
        let empty = runs::ThreadSearch { text: text(0), ..search() };
        assert_eq!(list(empty).unwrap().text, None);
    }

    #[test]
    fn metadata_of_an_update_is_an_object() {
        for metadata in ["null", "[]", "\"x\"", "7"] {
            let failure = update(metadata).unwrap_err();
            assert_eq!(failure.code, code::INVALID, "{metadata}");
            assert!(failure.message.contains("`runs.update-thread`: `metadata`"), "{failure}");
        }
        assert!(update("{}").unwrap().metadata.is_empty());
    }

    #[test]
    fn positions_of_pages_are_read_again() {
        let position = ThreadCursor { updated_ms: 7, thread: ThreadId::new("a").unwrap() };
        let page = ThreadSearchPage { items: Vec::new(), next: Some(position.clone()) };
        let search = runs::ThreadSearch { after: from_page(page).next, ..search() };
        assert_eq!(list(search).unwrap().after, Some(position));
    }
}
