//! Elicitations: an MCP server asks for input in the middle of a call, and the gate raises an
//! interrupt.
//!
//! A round is a set of questions that a server asks at once. The call continues after each round is
//! answered, so a call can have several rounds, one after the other. The event log contains the
//! questions that a person sees, and the data with which the call continues after each round.

use serde_json::json;
use wattle_graph::elicitation::{Elicitation, Elicited};
use wattle_graph::event::InterruptRaised;
use wattle_graph::id::InterruptId;
use wattle_graph::interrupt::Interrupt;

use crate::gate::divergence::divergence;
use crate::gate::entry::CallEntry;
use crate::gate::unwind::{CallError, Unwind};
use crate::hostcall::elicit;
use crate::hostcall::interrupt::InterruptRequest;
use crate::json::JsonSize;
use crate::limit::Limits;
use crate::ports::tool_server::ElicitationRound;

/// The answered rounds of a call.
#[derive(Default)]
pub(crate) struct AnsweredRounds {
    /// Rounds, oldest first.
    pub(crate) rounds: Vec<ElicitationRound>,
    /// The server that elicits, and its tool.
    pub(crate) server_tool: Option<(String, String)>,
    /// Sequence number of the last interrupt; 0 if there is none.
    pub(crate) raised_seq: u64,
    /// Size of all rounds.
    pub(crate) size: JsonSize,
}

impl AnsweredRounds {
    /// Returns true if the server holds its side of the call open for the last answer.
    pub(crate) fn is_held(&self) -> bool {
        self.rounds.last().is_some_and(|round| round.elicitation.held.is_some())
    }

    fn belong_to(&self, elicited: &Elicited) -> bool {
        let asker = self.server_tool.as_ref();
        asker.is_none_or(|(server, tool)| (server, tool) == (&elicited.server, &elicited.tool))
    }
}

impl CallEntry {
    /// Returns the last round of this call, answered or not, unless the call started again after
    /// that round.
    pub(crate) fn last_round(&self) -> Option<Interrupt> {
        let last = self.round_interrupts().last();
        last.filter(|last| self.last_start_seq.is_none_or(|begun| begun < last.raised_seq))
    }

    /// Unwinds the guest if the last round of this call has no answer, before the call starts
    /// again.
    ///
    /// # Errors
    ///
    /// [`Unwind::Suspended`] until the last round of this call is answered.
    pub(crate) fn check_rounds_answered(&self) -> Result<(), Unwind> {
        // Every host call takes this path, but few tasks elicit.
        if !self.task.has_elicited() {
            return Ok(());
        }
        match self.round_interrupts().last() {
            Some(Interrupt { raised, answer: None, .. }) => {
                Err(Unwind::Suspended(raised.interrupt))
            }
            _ => Ok(()),
        }
    }

    /// Returns all rounds of this call with their answers.
    ///
    /// # Errors
    ///
    /// [`Unwind::Suspended`] until every round is answered; [`Unwind::Divergence`] if a round
    /// belongs to another call with this number.
    pub(crate) fn answered_rounds(&self) -> Result<AnsweredRounds, Unwind> {
        let mut found = AnsweredRounds::default();
        for known in self.round_interrupts() {
            let Some(answer) = &known.answer else {
                return Err(Unwind::Suspended(known.raised.interrupt));
            };
            let elicited = known.raised.elicited.as_deref().filter(|elicited| {
                elicited.digest == self.request.digest && found.belong_to(elicited)
            });
            let Some(elicited) = elicited else {
                return Err(self.other_call_divergence(&known.raised));
            };
            found.size += JsonSize::of(&json!(elicited));
            found.size += JsonSize::of(answer);
            found
                .server_tool
                .get_or_insert_with(|| (elicited.server.clone(), elicited.tool.clone()));
            found.raised_seq = known.raised_seq;
            let answers = elicit::answers(&elicited.elicitation, answer);
            found
                .rounds
                .push(ElicitationRound { elicitation: elicited.elicitation.clone(), answers });
        }
        Ok(found)
    }

    /// Raises an interrupt for a round. Returns the unwind that suspends the task, or
    /// [`Unwind::Limit`] if too many interrupts are pending.
    ///
    /// # Errors
    ///
    /// A failure for questions that cannot be shown to a person; [`Unwind`] if the guest must be
    /// unwound.
    pub(crate) async fn elicit(
        &self,
        (server, tool): (&str, &str),
        round: usize,
        elicitation: Elicitation,
        limits: &Limits,
    ) -> Result<Unwind, CallError> {
        let question = elicit::round_interrupt(server, tool, round, &elicitation)?;
        let round = round as u32;
        let (server, tool) = (server.to_owned(), tool.to_owned());
        let holder = self.task.log.holder().filter(|_| elicitation.held.is_some());
        let host = holder.map(|holder| holder.0.clone());
        let elicited =
            Elicited { round, digest: self.request.digest, server, tool, host, elicitation };
        let logged = json!([question, elicited]);
        self.task.journal.count_size(JsonSize::of(&logged), limits)?;
        self.task.check_log_size().await?;
        let interrupt = self.round_id(round);
        let put =
            self.task.raise_interrupt(interrupt, self.number, question, Some(Box::new(elicited)));
        Ok(put.await)
    }

    /// Returns the divergence of a call under whose number the log holds the interrupt of another
    /// call.
    pub(crate) fn other_call_divergence(&self, raised: &InterruptRaised) -> Unwind {
        let before = match raised.elicited.as_deref() {
            Some(Elicited { digest, server, tool, .. }) => json!({
                "function": self.request.function,
                "request": { "server": server, "tool": tool, "digest": digest },
            }),
            None => json!({ "function": InterruptRequest::FUNCTION, "request": raised.payload }),
        };
        let now = json!({ "function": self.request.function, "request": self.request.journaled() });
        divergence(self.number, before, now)
    }

    /// Returns the rounds of this call, oldest first.
    fn round_interrupts(&self) -> impl Iterator<Item = Interrupt> {
        (0..).map_while(|round| self.task.interrupt(&self.round_id(round)))
    }

    /// Returns the interrupt id of a round, counted from 0.
    fn round_id(&self, round: u32) -> InterruptId {
        InterruptId::elicited(&self.task.task, &self.task.scope, self.number, round)
    }
}
