//! The pure core of Wattle: what a graph is and what happens next in it.
//!
//! Nothing here touches a clock, a disk, a socket, a thread or a random number. The engine
//! (`wattle-run`) performs what this crate decides, and records what happened as [`event::Event`]s.
//!
//! # Layout
//!
//! * [`id`]: newtypes for every identifier.
//! * [`definition`]: a graph as an author writes it (TOML or JSON).
//! * [`check`]: definition to [`graph::Graph`], with all problems at once.
//! * [`graph`]: the checked graph that the engine runs.
//! * [`expr`]: CEL conditions over the state, and expressions for projections.
//! * [`channel`]: state channels and their reducers.
//! * [`checkpoint`]: one point of a thread's lineage: values, versions, what runs next.
//! * [`event`]: what can happen; the one log that everything else is a projection of.
//! * [`llm`] and [`tool`]: what models and tools are asked and answer, as the log has it;
//!   [`call`]: the kinds of host calls, and typed views of their journal entries.
//! * [`principal`]: who asked for what the log records.
//! * [`message`]: a message as a channel holds it.
//! * [`schema`]: JSON Schema with bounds on its cost; [`limit`]: the limits of this crate.
//! * [`lineage`]: `(lineage, event) -> lineage`, the only place where state changes.
//! * [`plan`]: `(graph, lineage) -> tasks` of the next superstep.
//! * [`step`]: `(graph, lineage) -> next checkpoint`, once every task has finished.
//! * [`seal`]: digests that make a change of the past evident.
//! * [`interrupt`]: questions, and which answer belongs to which; [`elicitation`]: those that servers of tools ask
//!   in the middle of a call.
//! * [`failure`]: why something did not work, in the shape that guests and clients see.
//! * [`error`]: why a superstep could not be applied.
//! * [`mapping`]: the event log as an app's own stream, and as files.
//! * [`migrate`]: moving a thread to another version of its graph.
//! * [`mermaid`]: a graph as a picture.
//!
//! # One superstep
//!
//! ```
//! use std::collections::BTreeMap;
//! use wattle_graph::check::{NoFacts, check_toml};
//! use wattle_graph::event::{Event, EventKind, TaskFinished, Write};
//! use wattle_graph::id::{CheckpointId, Digest, Namespace, RunId, ThreadId};
//! use wattle_graph::lineage::Lineage;
//! use wattle_graph::plan::{Planned, plan};
//! use wattle_graph::step::{Position, accept_input, advance};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = r#"
//!     [graphs.greet]
//!     entry = "hello"
//!     channels.name = { schema = { type = "string" } }
//!     channels.greeting = {}
//!     nodes.hello = {}
//! "#;
//! let graphs = check_toml("graph.toml", text, &NoFacts);
//! let graph = &graphs.map_err(|problems| format!("{problems:?}"))?[0];
//! let (thread, run, root) = (ThreadId::new("t")?, RunId::new("r")?, Namespace::root());
//! let version = Digest::of(b"the graph and its components");
//! let position = |id| Position {
//!     tasks: None,
//!     id: CheckpointId(id), run: run.clone(), at_ms: 0, version, parents: BTreeMap::new(),
//! };
//!
//! let input = serde_json::json!({ "name": "Ada" });
//! let first = accept_input(graph, None, &root, &input, &BTreeMap::new(), position(1))?;
//! let mut lineage = Lineage::new(first);
//! let Planned::Tasks { run: tasks, .. } = plan(graph, &thread, &lineage, 2) else { panic!() };
//!
//! // The engine runs the task, and says what came of it with an event.
//! let finished = TaskFinished {
//!     task: tasks[0].id.clone(),
//!     node: tasks[0].node.clone(),
//!     index: tasks[0].index,
//!     base: lineage.checkpoint.meta.id,
//!     writes: vec![Write {
//!         channel: "greeting".parse()?,
//!         value: "Hello Ada".into(),
//!         overwrite: false,
//!     }],
//!     goto: None,
//!     sends: Vec::new(),
//!     for_parent: false,
//!     child: None,
//!     cached: false,
//!     duration_us: 20,
//! };
//! let kind = EventKind::TaskFinished(finished);
//! lineage.apply(&Event { seq: 1, at_ms: 0, run: run.clone(), namespace: root, kind });
//!
//! let second = advance(graph, &lineage, &BTreeMap::new(), position(2))?;
//! assert_eq!(second.state()["greeting"], "Hello Ada");
//! lineage.advance_to(second);
//! assert_eq!(plan(graph, &thread, &lineage, 1), Planned::Done);
//! # Ok(())
//! # }
//! ```

pub mod call;
pub mod channel;
pub mod check;
pub mod checkpoint;
pub mod definition;
pub mod elicitation;
pub mod error;
pub mod event;
pub mod expr;
pub mod failure;
pub mod graph;
pub mod id;
pub mod interrupt;
pub mod limit;
pub mod lineage;
pub mod llm;
pub mod mapping;
pub mod mermaid;
pub mod message;
pub mod migrate;
pub mod plan;
pub mod principal;
pub mod schema;
pub mod seal;
pub mod step;
pub mod tool;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod testing;
