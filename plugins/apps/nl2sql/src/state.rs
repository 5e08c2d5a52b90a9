//! Types of the state channels, under the names of their JSON documents.

use schemars::{Schema, SchemaGenerator};
use wattle_plugin::prelude::{Deserialize, Failure, JsonSchema, Serialize, Value};

/// One row of a result.
pub(crate) type Row = serde_json::Map<String, Value>;

/// Whether a message is chat or a question about the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Intent {
    Chat,
    BusinessQuery,
}

/// The intent of a message, with queries that are completed from earlier messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IntentResult {
    pub(crate) intent: Intent,
    pub(crate) is_followup: bool,
    #[schemars(range(min = 0, max = 1))]
    pub(crate) confidence: f64,
    pub(crate) merged_query: String,
    pub(crate) rewritten_query: String,
    pub(crate) threshold: f64,
}

/// A parsed task is always this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskIntent {
    BusinessQuery,
}

/// Something that the question names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskEntity {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) value: String,
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum FilterOp {
    #[serde(rename = "=")]
    Equal,
    #[serde(rename = "!=")]
    NotEqual,
    #[serde(rename = ">")]
    Greater,
    #[serde(rename = "<")]
    Less,
    #[serde(rename = ">=")]
    GreaterOrEqual,
    #[serde(rename = "<=")]
    LessOrEqual,
    #[serde(rename = "like")]
    Like,
    #[serde(rename = "in")]
    In,
    #[serde(rename = "not in")]
    NotIn,
    #[serde(rename = "between")]
    Between,
}

/// A condition on one field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskFilter {
    /// `table.field`, in the white-list.
    pub(crate) field: String,
    pub(crate) op: FilterOp,
    #[schemars(schema_with = "scalar_or_list")]
    pub(crate) value: Value,
}

/// Dates as `YYYY-MM-DD`, both inclusive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskTimeRange {
    pub(crate) start: Option<String>,
    pub(crate) end: Option<String>,
}

/// What kind of answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    Detail,
    Aggregate,
    Ranking,
    Trend,
}

/// The question taken apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParseResult {
    pub(crate) intent: TaskIntent,
    pub(crate) entities: Vec<TaskEntity>,
    pub(crate) dimensions: Vec<String>,
    pub(crate) metrics: Vec<String>,
    pub(crate) filters: Vec<TaskFilter>,
    pub(crate) time_range: TaskTimeRange,
    pub(crate) operation: Operation,
    #[schemars(range(min = 0, max = 1))]
    pub(crate) confidence: f64,
}

/// Which field stands for something that the question names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntityMapping {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) value: String,
    /// `table.field`.
    pub(crate) field: String,
    pub(crate) reason: String,
}

/// A missing field, and the field that replaced it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AppliedFieldReplacement {
    pub(crate) from: String,
    pub(crate) to: String,
}

/// A statement that passed the checks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SqlGenerationSuccess {
    pub(crate) sql: String,
    pub(crate) entity_mappings: Vec<EntityMapping>,
    pub(crate) sql_fields: Vec<String>,
    pub(crate) applied_field_replacements: Vec<AppliedFieldReplacement>,
}

/// The reason why there is no statement. The empty fields are part of the format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SqlGenerationFailed {
    #[schemars(extend("const" = ""))]
    pub(crate) sql: String,
    #[schemars(length(max = 0))]
    pub(crate) entity_mappings: Vec<EntityMapping>,
    #[schemars(length(max = 0))]
    pub(crate) sql_fields: Vec<String>,
    #[schemars(extend("const" = true))]
    pub(crate) generation_failed: bool,
    pub(crate) generation_error: String,
}

impl SqlGenerationFailed {
    pub(crate) fn new(generation_error: &str) -> Self {
        Self {
            sql: String::new(),
            entity_mappings: Vec::new(),
            sql_fields: Vec::new(),
            generation_failed: true,
            generation_error: generation_error.to_owned(),
        }
    }
}

/// The result of the generation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum SqlGenerationResult {
    Failed(SqlGenerationFailed),
    Success(SqlGenerationSuccess),
}

/// The result of the execution.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SqlValidateResult {
    pub(crate) is_valid: bool,
    pub(crate) error: Option<String>,
    pub(crate) rows: usize,
    pub(crate) result: Vec<Row>,
    pub(crate) executed_sql: String,
    pub(crate) empty_result: bool,
    pub(crate) zero_metric_result: bool,
}

impl SqlValidateResult {
    /// Creates the result of a statement that was not executed.
    pub(crate) fn refused(error: &str) -> Self {
        Self { error: Some(error.to_owned()), ..Self::default() }
    }
}

/// The kind of an error, which selects the hint for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ErrorType {
    ExecutionError,
    UnknownColumn,
    UnknownTable,
    SyntaxError,
    ObjectNotFound,
}

/// Fields that a missing name may mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FieldCandidate {
    pub(crate) missing: String,
    pub(crate) candidates: Vec<String>,
}

/// Sampled values of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProbeSample {
    pub(crate) field: String,
    pub(crate) probe_sql: String,
    pub(crate) values: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// Size of the schema knowledge base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KbSummary {
    pub(crate) table_count: usize,
    pub(crate) field_count: usize,
}

/// Context for the next generation, which the user does not see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HiddenContextResult {
    pub(crate) error_type: ErrorType,
    pub(crate) error: String,
    pub(crate) failed_sql: String,
    pub(crate) rewritten_query: String,
    pub(crate) field_candidates: Vec<FieldCandidate>,
    pub(crate) probe_samples: Vec<ProbeSample>,
    pub(crate) hints: Vec<String>,
    pub(crate) kb_summary: KbSummary,
    /// Number of this retry. The node sets it, and not the function that analyzes the error.
    pub(crate) retry_count: u32,
}

/// The outcome of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FinalStatus {
    Success,
    PartialSuccess,
    Failed,
}

/// The reason of the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReasonCode {
    IntentIsChat,
    TaskParseMissing,
    SqlValidateMissing,
    EmptyResultAfterRetry,
    ZeroMetricAfterRetry,
    SqlInvalidAfterRetry,
}

/// The result that the caller gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResultReturnResult {
    pub(crate) session_id: String,
    pub(crate) intent: Intent,
    pub(crate) is_followup: bool,
    pub(crate) merged_query: String,
    pub(crate) rewritten_query: String,
    pub(crate) skipped: bool,
    pub(crate) reason: Option<String>,
    pub(crate) final_status: FinalStatus,
    pub(crate) reason_code: Option<ReasonCode>,
    pub(crate) summary: String,
    pub(crate) assistant_reply: String,
    pub(crate) download_url: Option<String>,
    pub(crate) task: Option<ParseResult>,
    pub(crate) sql_result: Option<SqlGenerationResult>,
    pub(crate) sql_validate_result: Option<SqlValidateResult>,
    pub(crate) hidden_context_result: Option<HiddenContextResult>,
    pub(crate) hidden_context_retry_count: u32,
}

/// Returns the name of a variant without fields, as documents have it.
pub(crate) fn name(variant: impl Serialize) -> Result<String, Failure> {
    Ok(String::deserialize(serde_json::to_value(variant)?)?)
}

/// Returns the schema of a scalar or a list of scalars. It tells models with what a filter may
/// compare.
fn scalar_or_list(_generator: &mut SchemaGenerator) -> Schema {
    let scalar = ["string", "number", "boolean", "null"];
    schemars::json_schema!({
        "anyOf": [
            {"type": scalar},
            {"type": "array", "items": {"type": scalar}},
        ]
    })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::{SqlGenerationFailed, SqlGenerationResult, TaskFilter};

    #[test]
    fn failed_generation_is_distinguished_from_a_success() {
        let failed = SqlGenerationResult::Failed(SqlGenerationFailed::new("no"));
        let document = json!({
            "sql": "", "entity_mappings": [], "sql_fields": [], "generation_failed": true,
            "generation_error": "no",
        });
        assert_eq!(serde_json::to_value(&failed).unwrap(), document);
        assert_eq!(serde_json::from_value::<SqlGenerationResult>(document).unwrap(), failed);
        let success = json!({
            "sql": "WITH", "entity_mappings": [], "sql_fields": [],
            "applied_field_replacements": [],
        });
        let read: SqlGenerationResult = serde_json::from_value(success).unwrap();
        assert!(matches!(read, SqlGenerationResult::Success(_)));
    }

    #[test]
    fn operators_are_those_of_sql() {
        for op in ["=", "!=", ">", "<", ">=", "<=", "like", "in", "not in", "between"] {
            let filter = json!({"field": "a.b", "op": op, "value": [1, 2]});
            let read: TaskFilter = serde_json::from_value(filter.clone()).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), filter);
        }
        let unknown = json!({"field": "a.b", "op": "~", "value": 1});
        assert!(serde_json::from_value::<TaskFilter>(unknown).is_err());
    }
}
