//! Questions about a business database, answered with SQL that can only read.
//!
//! # Layout
//!
//! * `state`: the types of the state channels.
//! * `node`: one node of the graph a file.
//! * `ask`: a question to a model, put again if the answer has another form.
//! * `prompt`: the prompts, which are files of `prompts`.
//! * `step`: what all nodes have around them: the node-I/O record and the log of failures.
//! * `knowledge`: which tables and fields the business database has, and what they mean.
//! * `statement`: what a generated statement may be, read from its syntax tree.
//! * `mapping`: which field of the statement represents what the question names.
//! * `fault`, `candidate`, `probe`: what a failed statement teaches the next one.
//! * `rows`, `csv`, `reply`: a result for programs, for spreadsheets and for people.
//! * `store`: sessions, history, log and downloads in the app's own database.
//! * `web`: the app's HTTP endpoints, one resource a file.

mod ask;
mod candidate;
mod csv;
mod date;
mod fault;
mod knowledge;
mod mapping;
mod node;
mod owner;
mod probe;
mod prompt;
mod reply;
mod rows;
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

/// The app's own database.
const DATABASE: &str = "nl2sql";

/// The database that is asked about; the app may only read it.
const BUSINESS: &str = "business";
