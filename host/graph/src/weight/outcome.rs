//! Weight of the outcomes of tasks.

use super::{named, weight};
use crate::event::TaskFinished;

/// Returns the weight of the outcome of a task, in bytes: its writes, `goto` and sends.
pub fn outcome_weight(finished: &TaskFinished) -> u64 {
    let writes = finished.writes.iter();
    let writes = writes.map(|write| named(write.channel.as_str()) + weight(&write.value));
    let sends = finished.sends.iter();
    let sends = sends.map(|send| named(send.node.as_str()) + weight(&send.input));
    let targets = finished.goto.iter().flatten().map(|target| named(target.as_str()));
    writes.sum::<u64>() + sends.sum::<u64>() + targets.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::{EventKind, Send};
    use crate::testing::{ScriptedResult, finished, graph, node, ready, start};
    use crate::weight::{NAME_BYTES, VALUE_BYTES};

    #[test]
    fn outcome_weight_includes_writes_sends_and_gotos() {
        let graph = graph("[graphs.g]\nentry = 'a'\nchannels.log = {}\nnodes.a = {}");
        let lineage = start(&graph, &json!({})).unwrap();
        let task = ready(&graph, &lineage).remove(0);
        let send = Send { node: node("a"), input: json!("12"), timeout_ms: None };
        let did = ScriptedResult {
            goto: Some(vec![node("a"); 3]),
            sends: vec![send; 2],
            ..ScriptedResult::write("log", "1234")
        };
        let event = finished(&task, lineage.checkpoint.meta.id, did);
        let EventKind::TaskFinished(finished) = &event.kind else { panic!() };
        let name = NAME_BYTES + 1;
        let written = NAME_BYTES + 3 + VALUE_BYTES + 4;
        let sent = name + VALUE_BYTES + 2;
        assert_eq!(outcome_weight(finished), written + 2 * sent + 3 * name);
    }
}
