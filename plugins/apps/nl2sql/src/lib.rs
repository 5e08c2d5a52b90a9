//! Answers questions about a business database with read-only SQL. The README has the terms, the
//! files of each node, and an order for a first reading.
//!
//! # Layout
//!
//! * `state`: the types of the state channels.
//! * `node`: one node of the graph a file, with its prompt from the folder `prompts`.
//! * `ask`: requests to the models; one is repeated if the completion violates its schema.
//! * `setting`: the app's settings; `owner`: the admin and the tenant of a request or a run.
//! * `step`: runs the step of a node; `running_step`: the node-I/O record of a step.
//! * `knowledge`: the tables and fields of the business database, with their descriptions.
//! * `statement`: the checks of a generated statement, on its syntax tree.
//! * `mapping`: the fields of a statement that represent the entities of the question.
//! * `fault`, `candidate`, `probe`: the context that a failed statement gives the next attempt.
//! * `rows`, `csv`, `reply`: a result for programs, for spreadsheets and for people.
//! * `store`: sessions, history, log and downloads in the app's own database.
//! * `web`: the app's HTTP endpoints, one resource a file.

mod ask;
mod candidate;
mod csv;
mod fault;
mod knowledge;
mod mapping;
mod node;
mod owner;
mod probe;
mod reply;
mod rows;
mod running_step;
mod setting;
mod state;
mod statement;
mod step;
mod store;
#[cfg(test)]
mod testing;
mod web;

wattle_plugin::export! {
    nodes: [
        node::intent_recognition::intent_recognition,
        node::task_parse::task_parse,
        node::sql_generation::sql_generation,
        node::sql_validate::sql_validate,
        node::hidden_context::hidden_context,
        node::result_return::result_return,
    ],
    handlers: [
        web::chat::chat,
        web::chat::stream,
        web::sessions::list,
        web::sessions::remove,
        web::messages::list,
        web::messages::rows,
        web::messages::remove,
        web::downloads::download,
        web::suggestions::list,
    ],
}

/// Name of the graph in `graph.toml`.
const GRAPH: &str = "UnifiedChatGraph";

/// Name of the app's own database.
const DATABASE: &str = "nl2sql";

/// Name of the database that questions are about. The app may only read it.
const BUSINESS: &str = "business";
