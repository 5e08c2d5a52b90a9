//! The calls of one task, and their results.
//!
//! Every call gets a message for the model as its result: an output, a rejection, a failure, a trap
//! or a limit. Only errors of the task itself, such as an invalid channel, are failures of the
//! node.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_plugin::node::Update;
use wattle_plugin::tool::ToolOutput;
use wattle_plugin::tools::Call;
use wattle_plugin::{Failure, log, tools};

use crate::approval::{self, Verdict};
use crate::conversation::{Content, SILENT, Stored, StoredCall, give_ids};
use crate::granted::{Granted, Tool};
use crate::rules::Rules;
use crate::shown::Shown;
use crate::turn::Turn;

/// Maximum size of failure details for the model, in bytes. Larger details are omitted.
const DETAILS_LIMIT_BYTES: usize = 300;

/// Result of a call that needs an approval, but for which the rules allow no decision.
const NO_DECISION: &str =
    "the call needs an approval, but the rules of both nodes allow no decision";

/// The input of a task that an agent sent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// The batch. No channel can have this key, so that a batch is distinguishable from a state.
    #[serde(rename = "std.calls")]
    pub(crate) batch: Batch,
}

/// Tool calls and their context.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Batch {
    /// Name of the channel with the conversation.
    pub(crate) messages: String,
    /// Calls in order.
    pub(crate) calls: Vec<StoredCall>,
    /// Tools that have succeeded since the last user message.
    pub(crate) answered: BTreeSet<String>,
    /// Tool policy of the calls.
    pub(crate) rules: Rules,
    /// Granted tools, if the agent has listed them. Listing them again would cost a request to
    /// every server and a journal entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) granted: Option<Granted>,
    /// State that the tools see; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<Shown>,
}

/// The result of a call.
struct Done {
    message: Stored,
    updates: Vec<Update>,
}

impl Batch {
    /// Makes the calls as part of a task. Writes their results in the order of the calls.
    pub(crate) fn run(mut self, task: &str) -> Result<Turn, Failure> {
        let calls = std::mem::take(&mut self.calls);
        if calls.is_empty() {
            return Ok(Turn::default());
        }
        let granted = self.granted.take().map_or_else(Granted::list, Ok)?;
        self.rules.check(&granted)?;
        let done = if self.rules.parallel {
            self.at_once(&calls, &granted)?
        } else {
            self.one_by_one(&calls, &granted)?
        };
        let mut messages: Vec<Stored> = done.iter().map(|done| done.message.clone()).collect();
        give_ids(task, &mut messages);
        let mut turn = Turn::of(&self.messages, &messages)?;
        for update in done.into_iter().flat_map(|done| done.updates) {
            if self.rules.open(&update.channel) {
                if update.overwrite && !self.rules.parallel {
                    // The overwrite replaces the writes of earlier calls, as if each call were in
                    // its own superstep.
                    turn.forget(&update.channel);
                }
                turn.update(update);
            } else {
                log::warn!(
                    "a write of a tool to channel `{0}` was dropped; add `{0}` to `updates` under \
                     `with` of the node to permit it",
                    update.channel
                );
            }
        }
        Ok(turn)
    }

    fn at_once(&self, calls: &[StoredCall], granted: &Granted) -> Result<Vec<Done>, Failure> {
        let verdicts: Vec<Verdict> =
            calls.iter().map(|call| self.verdict(call, granted)).collect::<Result<_, _>>()?;
        let requests = calls.iter().zip(&verdicts).filter_map(|(call, it)| self.request(call, it));
        let mut answers = make(requests.collect()).into_iter();
        let done = calls.iter().zip(verdicts).map(|(call, verdict)| match verdict {
            Verdict::Answered(message) => Done { message: *message, updates: Vec::new() },
            Verdict::Call { changed, .. } => done(call, changed, answers.next()),
        });
        Ok(done.collect())
    }

    /// Makes the calls in order. A result counts for the order rules of the next call, and the next
    /// call sees the overwrites.
    fn one_by_one(
        &mut self,
        calls: &[StoredCall],
        granted: &Granted,
    ) -> Result<Vec<Done>, Failure> {
        let mut all = Vec::with_capacity(calls.len());
        for call in calls {
            let done = self.at_once(std::slice::from_ref(call), granted)?;
            for done in done {
                if done.message.is_success() {
                    self.answered.insert(call.name.clone());
                }
                if let Some(state) = &mut self.state {
                    let open = |update: &&Update| self.rules.open(&update.channel);
                    state.apply(done.updates.iter().filter(open));
                }
                all.push(done);
            }
        }
        Ok(all)
    }

    fn request(&self, call: &StoredCall, verdict: &Verdict) -> Option<Call> {
        let Verdict::Call { tool, changed } = verdict else { return None };
        let arguments = changed.clone().unwrap_or_else(|| call.arguments.clone());
        let request = Call::new(tool.clone(), arguments).call_id(call.id.clone());
        Some(match &self.state {
            Some(state) => request.state(state.to_value()),
            None => request,
        })
    }

    /// Decides whether to make a call.
    fn verdict(&self, call: &StoredCall, granted: &Granted) -> Result<Verdict, Failure> {
        let Some(tool) = granted.find(&call.name).filter(|tool| self.rules.allow(tool)) else {
            let known = granted.tools.iter().filter(|tool| self.rules.allow(tool));
            return Ok(Verdict::refused(call, unknown(&call.name, known, granted)));
        };
        if let Some(why) = call.unreadable() {
            return Ok(Verdict::refused(call, why));
        }
        if let Some(why) = self.rules.too_early(tool, &self.answered, granted) {
            return Ok(Verdict::refused(call, why));
        }
        match self.rules.approval(tool) {
            None => Ok(Verdict::made(tool, None)),
            Some(allowed) if allowed.is_empty() => Ok(Verdict::refused(call, NO_DECISION)),
            Some(allowed) => approval::ask(call, tool, &allowed),
        }
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a Tool>, granted: &Granted) -> String {
    let names: Vec<String> = known.map(|tool| format!("`{}`", tool.name)).collect();
    let is_known = granted.find(name).is_some();
    let away = granted.away(name).filter(|_| !is_known).map(|failure| failure.message);
    match (away, names.is_empty()) {
        (Some(away), true) => away,
        (Some(away), false) => format!("{away}; the tools are {}", names.join(", ")),
        (None, true) => format!("there is no tool `{name}`, and there are no other tools"),
        (None, false) => {
            format!("there is no tool `{name}`; the tools are {}", names.join(", "))
        }
    }
}

fn make(mut calls: Vec<Call>) -> Vec<Result<ToolOutput, Failure>> {
    match calls.len() {
        0 | 1 => calls.pop().map(Call::call).into_iter().collect(),
        _ => tools::call_all(calls),
    }
}

fn done(
    call: &StoredCall,
    changed: Option<Value>,
    answer: Option<Result<ToolOutput, Failure>>,
) -> Done {
    let (content, structured, is_error, updates) = match answer {
        Some(Ok(output)) => {
            let content = match (&output.content[..], &output.structured) {
                ([], Some(structured)) => Content::Text(structured.to_string()),
                ([], None) => Content::Text(SILENT.to_owned()),
                _ => Content::of(output.content),
            };
            (content, output.structured, output.is_error, output.updates)
        }
        Some(Err(failure)) => (Content::Text(words(&failure)), None, true, Vec::new()),
        None => (Content::Text("the call has no result".to_owned()), None, true, Vec::new()),
    };
    let message = Stored::answer(call, content, is_error);
    Done { message: Stored { structured, arguments: changed, ..message }, updates }
}

/// Formats a failure as text for the model.
fn words(failure: &Failure) -> String {
    let text = format!("{}: {}", failure.code, failure.message);
    let details = failure.details.as_ref().map(ToString::to_string);
    match details.filter(|details| details.len() <= DETAILS_LIMIT_BYTES) {
        Some(details) => format!("{text}\n{details}"),
        None => text,
    }
}
