//! Documents that several endpoints have.

use wattle_plugin::prelude::JsonSchema;

use crate::state::{HoldingItem, OperationItem, TaskType};

/// The review that a person has to confirm, as the payload of the interrupt has it.
#[expect(dead_code, reason = "only its schema is used: the graph makes the payload")]
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Review {
    #[serde(rename = "type")]
    kind: TaskType,
    rows: Vec<ReviewRow>,
    /// Fields that the person must fill in, such as `rows[0].ticker`.
    missing_fields: Vec<String>,
    warnings: Vec<String>,
}

/// A trade or a holding of a review.
#[expect(dead_code, reason = "only its schema is used: the graph makes the rows")]
#[derive(JsonSchema)]
#[serde(untagged)]
pub(crate) enum ReviewRow {
    Operation(OperationItem),
    Holding(HoldingItem),
}
