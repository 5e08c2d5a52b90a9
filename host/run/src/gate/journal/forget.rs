//! Selects the recorded calls that the next execution of a task repeats.

use std::collections::BTreeMap;

use wattle_graph::event::Called;
use wattle_graph::failure::code;

use crate::hostcall::runs::EndedRun;
use crate::hostcall::sql::{ROLLED_BACK, TRANSACTION, TRANSACTION_END};
use crate::hostcall::stream::STREAM_READ;
use crate::hostcall::{clock, emit};

/// Removes the failed calls of the last batch, so that the next attempt executes them again.
/// In-doubt calls are kept.
pub(super) fn forget_failed(entries: &mut BTreeMap<u32, (u64, Called)>) {
    let Some((_, last)) = entries.values().next_back() else { return };
    let (batch, is_look) = (last.batch, last.function == STREAM_READ);
    // Stream reads of a call that failed or has no result are discarded with the call. The reads
    // are kept if the guest made another call between them that must not be repeated, because the
    // calls after the reads would get other numbers.
    let cut = is_look && entries.get(&batch).is_none_or(|(_, first)| first.result.is_err());
    let mut later = entries.range(batch.saturating_add(1)..);
    let is_void = cut && later.all(|(_, (_, entry))| has_no_effect(entry));
    entries.retain(|call, (_, entry)| *call < batch || !(is_void || failed_without_doubt(entry)));
}

/// Removes rolled-back transactions that were recorded after `newest`, the sequence number of the
/// last start, other result or interrupt. The host rolls back a transaction that is open when a
/// guest ends. No later entry can depend on the reads of such a transaction, so the next execution
/// may repeat it.
pub(super) fn drop_trailing_rollbacks(entries: &mut BTreeMap<u32, (u64, Called)>, newest: u64) {
    entries.retain(|_, (seq, called)| *seq <= newest || !is_rolled_back(called));
}

/// Returns true if repeating the call has no effect outside of the guest.
fn has_no_effect(called: &Called) -> bool {
    let function = called.function.as_str();
    function == STREAM_READ
        || clock::FUNCTIONS.contains(&function)
        || emit::FUNCTIONS.contains(&function)
}

/// Returns true if the call failed and is not in doubt. Such a call may be repeated.
fn failed_without_doubt(called: &Called) -> bool {
    is_failed(called) && !is_in_doubt(called)
}

/// Returns true if the result of the call is the failure `in-doubt`.
pub(crate) fn is_in_doubt(called: &Called) -> bool {
    matches!(&called.result, Err(failure) if failure.code == code::IN_DOUBT)
}

fn is_failed(called: &Called) -> bool {
    match &called.result {
        Err(_) => true,
        // A failed run of a subgraph continues where it failed.
        Ok(answer) if called.function == EndedRun::FUNCTION => answer["status"] == "failed",
        Ok(_) => is_rolled_back(called),
    }
}

/// Returns true if the call is a transaction that was rolled back.
pub(super) fn is_rolled_back(called: &Called) -> bool {
    let end = called.result.as_ref().map(|answer| &answer[TRANSACTION_END]);
    called.function == TRANSACTION && end.is_ok_and(|end| end == ROLLED_BACK)
}
