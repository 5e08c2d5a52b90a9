//! Reasoning: answers questions about business data over an ontology. The README has the terms, and
//! the files of each node.
//!
//! # Layout
//!
//! * `state`: types of the state channels.
//! * `node`: nodes of the graph, one per file.
//! * `executor`: gets the data of a chosen capability or object property.
//! * `plan`: conversion of a model's plan into arguments of the data service.
//! * `catalog`: the fields of an ontology, by the names that models use.
//! * `ontology`: ontologies, as the graph service describes them.
//! * `model`, `mcp`: calls of the model and of tools, with the failures that clients expect.
//! * `task`: the table of executed tasks.
//! * `result`: the result of a turn.
//! * `session`: sessions and turns in the database, which follow the runs.
//! * `audit`: the audit trail, a projection of the event log.
//! * `time`: the current time as a text, and the date for the model.
//! * `web`: HTTP endpoints, one resource per file. The page that uses them is in the folder `page`,
//!   and the host serves it.

mod audit;
mod catalog;
mod executor;
mod mcp;
mod model;
mod node;
mod ontology;
mod plan;
mod result;
mod session;
mod state;
mod task;
#[cfg(test)]
mod testing;
mod time;
mod web;

wattle_plugin::export! {
    nodes: [
        node::understand_intent::understand_intent,
        node::discover_candidates::discover_candidates,
        node::select_anchor_ontologies::select_anchor_ontologies,
        node::inspect_ontology::inspect_ontology,
        node::execute::execute,
        node::finalize::finalize,
    ],
    handlers: [
        web::sessions::create,
        web::sessions::show,
        web::run::run,
        web::clarify::clarify,
        web::cancel::cancel,
        web::trace::trace,
        web::tenant_llm::put,
        web::tenant_llm::get,
        web::tenant_llm::delete,
    ],
}

/// Name of the graph in `graph.toml`.
const GRAPH: &str = "reasoning";

/// Name of the database, from the app's manifest.
const DATABASE: &str = "reasoning";

/// Model route of every call. A tenant can override it by a route of its own.
const ROUTE: &str = "reasoning";
