//! Which answered calls a further execution of a task makes again.

use std::collections::BTreeMap;

use wattle_graph::event::Called;
use wattle_graph::failure::code;

use crate::hostcall::runs::EndedRun;
use crate::hostcall::sql::{ROLLED_BACK, TRANSACTION, TRANSACTION_END};
use crate::hostcall::stream::LOOK;

/// Forgets the calls of the last batch that failed, so that the next attempt makes them again.
pub(super) fn forget_failed(entries: &mut BTreeMap<u32, (u64, Called)>) {
    let Some((_, last)) = entries.values().next_back() else { return };
    let (batch, is_look) = (last.batch, last.function == LOOK);
    // Looks at the pieces of an answer that failed are void with it, unless the guest did something
    // in between that must not be done twice: calls after it would get other numbers.
    let cut = is_look && entries.get(&batch).is_none_or(|(_, first)| first.result.is_err());
    let mut later = entries.range(batch.saturating_add(1)..);
    let is_void = cut && later.all(|(_, (_, entry))| is_harmless(entry));
    entries.retain(|call, (_, entry)| *call < batch || !(is_void || is_surely_failed(entry)));
}

/// Forgets transactions that were rolled back after everything else: after `newest`, where another
/// call was begun or answered last, or a question asked. Often nobody meant that: the guest ended
/// with a transaction open. Nothing was done since that depends on what was seen in it, so a
/// further execution may go through it as if for the first time.
pub(super) fn forget_last_rollbacks(entries: &mut BTreeMap<u32, (u64, Called)>, newest: u64) {
    entries.retain(|_, (seq, called)| *seq <= newest || !is_rolled_back(called));
}

/// Whether nobody outside notices if a call is made again.
fn is_harmless(called: &Called) -> bool {
    let harmless = ["emit.", "clock.", "random."];
    called.function == LOOK || harmless.iter().any(|name| called.function.starts_with(name))
}

/// Whether a call may be made again without a person who wants it.
fn is_surely_failed(called: &Called) -> bool {
    is_failed(called) && !is_in_doubt(called)
}

/// Whether a call failed of which nobody knows whether it had its effect.
pub(crate) fn is_in_doubt(called: &Called) -> bool {
    matches!(&called.result, Err(failure) if failure.code == code::IN_DOUBT)
}

fn is_failed(called: &Called) -> bool {
    match &called.result {
        Err(_) => true,
        // A graph that the task started and that failed goes on where it failed.
        Ok(answer) if called.function == EndedRun::FUNCTION => answer["status"] == "failed",
        Ok(_) => is_rolled_back(called),
    }
}

/// Whether a call is a transaction that left nothing behind.
pub(super) fn is_rolled_back(called: &Called) -> bool {
    let end = called.result.as_ref().map(|answer| &answer[TRANSACTION_END]);
    called.function == TRANSACTION && end.is_ok_and(|end| end == ROLLED_BACK)
}
