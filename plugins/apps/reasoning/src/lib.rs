//! Reasoning: questions about business data, answered over an ontology.
//!
//! # Layout
//!
//! * `state`: the types of the state channels.
//! * `node`: one node of the graph a file, with the prompts it uses.
//! * `executor`: how a chosen capability or object property becomes data.
//! * `plan`, `catalog`: from what a model wants to what the data service takes.
//! * `ontology`: what the graph service says of ontologies.
//! * `prompt`: what the model is instructed, with the texts in the folder `prompts`.
//! * `model`, `mcp`: calls of the model and of tools, with the failures that clients know.
//! * `task`: the table of executed tasks.
//! * `session`: sessions and turns in the database, kept in step with the runs.
//! * `audit`: the audit trail, a projection of the event log.
//! * `web`: the HTTP endpoints, one resource a file. The page that uses them is in the folder
//!   `page`, and the host serves it.

mod audit;
mod catalog;
mod executor;
mod mcp;
mod model;
mod node;
mod ontology;
mod plan;
mod prompt;
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

/// The model route of every call, which a tenant may replace by one of its own.
const ROUTE: &str = "reasoning";
