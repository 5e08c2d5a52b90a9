//! How a run that was asked for begins in the engine.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::CheckpointId;
use wattle_graph::step::Command;
use wattle_run::call::runs::{OnFailure, OpenQuestion, ResumeRun, RunRef, Runs as _, StartRun};
use wattle_run::call::travel::{CommandThread, ForkFrom, ForkInto, ForkThread};

use crate::agents::Agents;
use crate::doc::run::{RunDoc, Work};

/// Begins a run; returns once it is durable that it has begun.
///
/// # Errors
///
/// Those of the engine; `busy` while another run is at work on the thread.
pub(crate) async fn begin(agents: &Agents, doc: &RunDoc) -> Result<RunRef, Failure> {
    let engine = agents.engine();
    match &doc.work {
        Work::Start { input } => engine.start(start(doc, input.clone())).await,
        Work::GoOn => engine.resume(resume(doc, BTreeMap::new())).await,
        Work::Answer { resume: value } => {
            let answers = answered(agents, doc, value).await?;
            engine.resume(resume(doc, answers)).await
        }
        Work::Command { writes, goto, sends, resume, checkpoint } => {
            let answers = match resume {
                Some(value) => answered(agents, doc, value).await?,
                None => BTreeMap::new(),
            };
            let (writes, goto, sends) = (writes.clone(), goto.clone(), sends.clone());
            let command = Command { writes, goto, sends };
            engine.command(commanded(doc, command, answers, *checkpoint)).await
        }
        Work::Fork { checkpoint, input } => {
            let fork = ForkThread {
                thread: doc.thread.clone(),
                run: Some(doc.run.clone()),
                from: ForkFrom::Checkpoint { checkpoint: *checkpoint, input: input.clone() },
                into: ForkInto::Same,
                app: Some(doc.app.clone()),
                tenant: doc.tenant.clone(),
                options: doc.options.clone(),
            };
            engine.fork(fork).await
        }
    }
}

/// What is answered of the questions that are open now.
async fn answered(
    agents: &Agents,
    doc: &RunDoc,
    value: &Value,
) -> Result<BTreeMap<String, Value>, Failure> {
    let view = agents.engine().thread(&doc.thread).await?;
    let open = view.map(|view| view.interrupts).unwrap_or_default();
    answers(&open, value)
}

/// What the first run of a thread is of, stays said of the thread.
fn facts(doc: &RunDoc) -> BTreeMap<String, Value> {
    let facts = [("graph_id", &doc.graph_id), ("assistant_id", &doc.assistant)];
    facts.map(|(name, id)| (name.to_owned(), json!(id))).into()
}

fn commanded(
    doc: &RunDoc,
    command: Command,
    answers: BTreeMap<String, Value>,
    checkpoint: Option<CheckpointId>,
) -> CommandThread {
    CommandThread {
        thread: doc.thread.clone(),
        run: Some(doc.run.clone()),
        app: doc.app.clone(),
        graph: Some(doc.graph.clone()),
        tenant: doc.tenant.clone(),
        checkpoint,
        command,
        answers,
        context: doc.context.clone(),
        metadata: facts(doc),
        options: doc.options.clone(),
    }
}

fn start(doc: &RunDoc, input: Value) -> StartRun {
    StartRun {
        app: doc.app.clone(),
        graph: Some(doc.graph.clone()),
        input,
        thread: Some(doc.thread.clone()),
        run: Some(doc.run.clone()),
        context: doc.context.clone(),
        metadata: facts(doc),
        tenant: doc.tenant.clone(),
        options: doc.options.clone(),
        ttl: None,
    }
}

fn resume(doc: &RunDoc, answers: BTreeMap<String, Value>) -> ResumeRun {
    ResumeRun {
        thread: doc.thread.clone(),
        run: Some(doc.run.clone()),
        answers,
        on_failure: OnFailure::Keep,
        app: Some(doc.app.clone()),
        tenant: doc.tenant.clone(),
        options: doc.options.clone(),
    }
}

/// Which question a value answers: an object whose keys are all ids of open questions answers each
/// of these; anything else is the answer to the only one.
///
/// # Errors
///
/// `conflict` if nothing is asked, `invalid` if it is not clear what is answered.
pub(crate) fn answers(
    open: &[OpenQuestion],
    value: &Value,
) -> Result<BTreeMap<String, Value>, Failure> {
    let is_asked = |id: &String| open.iter().any(|question| question.id == *id);
    if let Value::Object(fields) = value
        && !fields.is_empty()
        && fields.keys().all(is_asked)
    {
        return Ok(fields.clone().into_iter().collect());
    }
    match open {
        [only] => Ok([(only.id.clone(), value.clone())].into()),
        [] => {
            let text = "`command.resume` answers a question, and none is open on this thread";
            Err(Failure::new(code::CONFLICT, text))
        }
        several => {
            let ids: Vec<_> = several.iter().map(|question| format!("`{}`", question.id)).collect();
            let text = format!(
                "several questions are open; give `command.resume` as an object from interrupt ids \
                 to answers, of {}",
                ids.join(", ")
            );
            Err(Failure::new(code::INVALID, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use wattle_graph::id::{Namespace, NodeName};

    use super::*;

    fn question(id: &str) -> OpenQuestion {
        OpenQuestion {
            id: id.into(),
            namespace: Namespace::root(),
            node: NodeName::new("ask").unwrap(),
            payload: Value::Null,
            response_schema: None,
            asked_ms: 0,
            expires_ms: None,
        }
    }

    #[test]
    fn a_value_answers_the_only_question_and_a_map_each_that_it_names() {
        let one = [question("a")];
        let two = [question("a"), question("b")];
        let told = |open: &[OpenQuestion], value: Value| {
            answers(open, &value).map(|it| json!(it)).map_err(|failure| failure.code.clone())
        };
        assert_eq!(told(&one, json!("yes")), Ok(json!({ "a": "yes" })));
        assert_eq!(told(&one, json!({ "x": 1 })), Ok(json!({ "a": { "x": 1 } })));
        assert_eq!(told(&one, json!({})), Ok(json!({ "a": {} })));
        assert_eq!(told(&two, json!({ "b": 1 })), Ok(json!({ "b": 1 })));
        assert_eq!(told(&two, json!({ "a": 1, "c": 2 })), Err("invalid".into()));
        assert_eq!(told(&two, json!("yes")), Err("invalid".into()));
        assert_eq!(told(&[], json!("yes")), Err("conflict".into()));
    }
}
