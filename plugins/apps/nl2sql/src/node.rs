//! The nodes of the graph, one a file.

pub(crate) mod hidden_context;
pub(crate) mod intent_recognition;
pub(crate) mod result_return;
pub(crate) mod sql_generation;
pub(crate) mod sql_validate;
pub(crate) mod task_parse;
