//! Reopens a failed run: rolls it back to the interrupts that it had answered.

use std::collections::BTreeSet;

use wattle_graph::event::{Event, EventKind, Reopened};
use wattle_graph::failure::Failure;
use wattle_graph::id::{InterruptId, Namespace, RunId, TaskId};

use super::Driver;
use crate::view;

impl Driver {
    /// Rolls the run back to the interrupts that it had answered, if its `on_failure` is `reopen`.
    /// Returns the event by which the thread returns to their checkpoint. The batch that ends the
    /// run writes this event.
    pub(super) async fn reopen(&mut self, failure: &Failure) -> Option<Event> {
        let to = self.run.reopen?;
        let log = self.context().log.clone();
        log.wait_durable().await.ok()?;
        let tuple = view::root_checkpoint(log.states(), &self.record.id, to).await.ok()??;
        let answered = answered_interrupts(&self.run.id, &tuple.events);
        let reopened = Reopened {
            to,
            tasks: tasks_running_subgraphs(&tuple.events, &answered),
            interrupts: answered.into_iter().map(|(_, interrupt)| interrupt).collect(),
            failure: Some(failure.clone()),
        };
        let event = log.event(&self.run.id, EventKind::Reopened(reopened));
        let mut lineage = view::lineage(&tuple);
        lineage.apply(&event);
        self.superstep_loop.state.lineage = lineage;
        Some(event)
    }
}

/// Returns the interrupts that a run had answered, each with the namespace of its graph.
fn answered_interrupts(run: &RunId, events: &[Event]) -> Vec<(Namespace, InterruptId)> {
    let own = events.iter().filter(|event| event.run == *run);
    own.filter_map(|event| match &event.kind {
        EventKind::Answered(answered) => {
            Some((event.namespace.clone(), answered.interrupt.clone()))
        }
        _ => None,
    })
    .collect()
}

/// Returns the tasks that run the subgraphs whose tasks raised the interrupts, and the tasks of all
/// their parent graphs.
fn tasks_running_subgraphs(events: &[Event], answered: &[(Namespace, InterruptId)]) -> Vec<TaskId> {
    let graphs: BTreeSet<Namespace> = answered
        .iter()
        .flat_map(|(asked, _)| asked.ancestors())
        .filter(|graph| !graph.is_root())
        .collect();
    let mut tasks: BTreeSet<TaskId> = graphs.iter().filter_map(Namespace::task).collect();
    // The namespace of a subgraph with a state of its own does not name its task.
    tasks.extend(events.iter().filter_map(|event| match &event.kind {
        EventKind::TaskFinished(done) => {
            let child = done.child.as_ref()?;
            graphs.contains(&child.namespace).then(|| done.task.clone())
        }
        _ => None,
    }));
    tasks.into_iter().collect()
}
