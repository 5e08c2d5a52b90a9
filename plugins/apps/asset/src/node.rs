//! Nodes of the graph, one per file.

pub(crate) mod check_missing;
pub(crate) mod enrich;
pub(crate) mod ext_hold;
pub(crate) mod ext_op;
pub(crate) mod img_classify;
pub(crate) mod ingest;
pub(crate) mod present_review;
pub(crate) mod store_db;
pub(crate) mod text_classify;
