//! The pure core of Wattle: graph definitions, and the rules by which graphs run.
//!
//! This crate uses no clock, file, socket, thread or random number. The engine (`wattle-run`)
//! performs what this crate decides, and records the outcome as [`event::Event`]s.
//!
//! # Layout
//!
//! * [`id`]: newtypes for every identifier.
//! * [`definition`]: a graph as an author writes it, in TOML or JSON.
//! * [`check`]: turns a definition into a [`graph::Graph`] and reports all problems at once;
//!   [`toml_depth`]: the nesting of a TOML document; [`toml_lines`]: the lines of its values.
//! * [`graph`]: the checked graph that the engine runs.
//! * [`expr`]: CEL conditions over the state, and CEL expressions for projections.
//! * [`channel`]: state channels and their reducers.
//! * [`checkpoint`]: one point of a thread's lineage: values, versions and triggers.
//! * [`event`]: the events of a thread's log, from which everything else is projected.
//! * [`llm`] and [`tool`]: requests and results of models and tools, in the form of the log;
//!   [`call`]: the kinds of host calls, and typed views of their journal entries.
//! * [`principal`]: the party that requested what an event records.
//! * [`message`]: the messages of a `messages` channel; [`conversation`]: what models see of them,
//!   and what a node that calls a model needs of all of them.
//! * [`schema`]: JSON Schema with bounds on its cost; [`limit`]: the limits of this crate;
//!   [`weight`]: the memory of values, which some limits count; [`json_text`]: values as text, its
//!   length and its nesting; [`omit`]: when serialization omits a field.
//! * [`lineage`]: `(lineage, event) -> lineage`, the only place where state changes.
//! * [`plan`]: `(graph, lineage) -> tasks` of the next superstep.
//! * [`step`]: `(graph, lineage) -> next checkpoint`, once every task has finished.
//! * [`suggest`]: hints for names that do not exist; [`expectation`]: what a deserializer expects,
//!   in words of a document.
//! * [`seal`]: a hash chain that makes changes to stored events evident.
//! * [`interrupt`]: interrupts, and the matching of answers to them; [`elicitation`]: questions
//!   that MCP servers ask in the middle of a tool call.
//! * [`failure`]: the error that guests, events and HTTP responses share.
//! * [`error`]: the errors of applying a superstep, an edit or an input.
//! * [`mapping`]: projects the event log into an app's own stream and into files.
//! * [`migrate`]: moves a thread to another version of its graph.
//! * [`mermaid`]: draws a graph as a Mermaid diagram.
//!
//! # One superstep
//!
//! ```
//! use std::collections::BTreeMap;
//! use wattle_graph::check::{AnyPlugin, check_toml};
//! use wattle_graph::event::{Event, EventKind, TaskFinished, Write};
//! use wattle_graph::id::{CheckpointId, Digest, Namespace, RunId, ThreadId};
//! use wattle_graph::lineage::Lineage;
//! use wattle_graph::plan::{Plan, plan};
//! use wattle_graph::step::{CheckpointStamp, accept_input, advance};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = r#"
//!     [graphs.greet]
//!     entry = "hello"
//!     channels.name = { schema = { type = "string" } }
//!     channels.greeting = {}
//!     nodes.hello = {}
//! "#;
//! let graphs = check_toml("graph.toml", text, &AnyPlugin);
//! let graph = &graphs.map_err(|problems| format!("{problems:?}"))?[0];
//! let (thread, run, root) = (ThreadId::new("t")?, RunId::new("r")?, Namespace::root());
//! let version = Digest::of(b"the graph and its components");
//! let position = |id| CheckpointStamp {
//!     tasks: None,
//!     id: CheckpointId(id), run: run.clone(), at_ms: 0, version, parents: BTreeMap::new(),
//! };
//!
//! let input = serde_json::json!({ "name": "Ada" });
//! let first = accept_input(graph, None, &root, &input, &BTreeMap::new(), position(1))?;
//! let mut lineage = Lineage::new(first);
//! let Plan::Tasks { runnable: tasks, .. } = plan(graph, &thread, &lineage, 2) else { panic!() };
//!
//! // The engine runs the task and records its outcome as an event.
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
//! let kind = EventKind::TaskFinished(finished.into());
//! lineage.apply(&Event { seq: 1, at_ms: 0, run: run.clone(), namespace: root, kind });
//!
//! let second = advance(graph, &lineage, &BTreeMap::new(), position(2))?;
//! assert_eq!(second.state()["greeting"], "Hello Ada");
//! lineage.advance_to(second);
//! assert_eq!(plan(graph, &thread, &lineage, 1), Plan::Done);
//! # Ok(())
//! # }
//! ```

pub mod call;
pub mod channel;
pub mod check;
pub mod checkpoint;
pub mod conversation;
pub mod definition;
pub mod elicitation;
pub mod error;
pub mod event;
pub mod expectation;
pub mod expr;
pub mod failure;
pub mod graph;
pub mod id;
pub mod interrupt;
pub mod json_text;
pub mod limit;
pub mod lineage;
pub mod llm;
pub mod mapping;
pub mod mermaid;
pub mod message;
pub mod migrate;
pub mod omit;
pub mod plan;
pub mod principal;
pub mod schema;
pub mod seal;
pub mod step;
pub mod suggest;
pub mod toml_depth;
pub mod toml_lines;
pub mod tool;
pub mod weight;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod testing;
