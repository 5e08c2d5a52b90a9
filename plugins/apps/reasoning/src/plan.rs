//! Plans: what a model writes ([`Wanted`]), the normalized plan ([`Plan`]), and the arguments of
//! the data service.
//!
//! `normalize` converts the first into the second. `operator` has the operators of conditions, and
//! `unknown` the words of a plan that name nothing.

mod normalize;
mod operator;
mod unknown;

use wattle_plugin::prelude::{Deserialize, JsonSchema, Serialize, Value, json};

pub(crate) use self::normalize::{normalize, unknown_words};
pub(crate) use self::operator::{Operator, Operators, UNSUPPORTED};
pub(crate) use self::unknown::{UNKNOWN_WORD, Unknown};

/// Kind of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    /// Rows.
    Query,
    /// Metrics by group.
    GroupAnalysis,
}

impl Mode {
    /// Returns the tool of the data service.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Query => "mcp.data.query",
            Self::GroupAnalysis => "mcp.data.group-analysis",
        }
    }
}

/// A plan as a model writes it.
// Every field may be missing; `normalize` uses its default. The schema has the line above as its
// description, which the model reads.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Wanted {
    /// `query` for rows, `group-analysis` for numbers by groups.
    pub(crate) mode: String,
    // Without the field it is unclear whether there are conditions, so the model is asked again.
    #[schemars(with = "Vec<WantedFilter>")]
    pub(crate) filters: Option<Vec<WantedFilter>>,
    /// Fields to group by.
    pub(crate) group_by: Vec<String>,
    pub(crate) metrics: Vec<WantedMetric>,
    pub(crate) page: Option<i64>,
    pub(crate) page_size: Option<i64>,
    /// A field, or the alias of a metric.
    pub(crate) sort_field: Option<String>,
    /// `asc` or `desc`.
    pub(crate) sort_order: Option<String>,
}

/// A condition as a model writes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct WantedFilter {
    pub(crate) field: String,
    /// `eq`, `ne`, `like`, `in`, `not_in`, `gt`, `gte`, `lt` or `lte`.
    pub(crate) op: String,
    #[schemars(extend("type" = ["string", "number", "boolean", "array"], "items" = {"type": ["string", "number"]}))]
    pub(crate) value: Value,
}

/// A number as a model wants it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct WantedMetric {
    /// `count`, `sum`, `avg`, `min` or `max`.
    pub(crate) agg: String,
    pub(crate) field: Option<String>,
    pub(crate) alias: Option<String>,
}

/// A normalized plan, which the data service accepts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    pub(crate) filters: Vec<Filter>,
    /// Conditions on fields that the ontology does not have. They are reported and not executed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored: Vec<IgnoredFilter>,
    pub(crate) group_by: Vec<String>,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) page: i64,
    pub(crate) page_size: i64,
    pub(crate) sort_field: Option<String>,
    pub(crate) sort_order: &'static str,
}

/// A condition on a field of the data.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Filter {
    pub(crate) field: String,
    pub(crate) op: &'static str,
    pub(crate) value: Value,
}

/// A condition that is not executed, as a model writes it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct IgnoredFilter {
    pub(crate) field: String,
    pub(crate) op: String,
    /// Null for a condition without a value, such as `is_null`.
    #[schemars(extend("type" = ["string", "number", "boolean", "array", "null"], "items" = {"type": ["string", "number"]}))]
    pub(crate) value: Value,
}

impl From<&WantedFilter> for IgnoredFilter {
    fn from(wanted: &WantedFilter) -> Self {
        let WantedFilter { field, op, value } = wanted.clone();
        Self { field, op, value }
    }
}

/// A metric of each group.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Metric {
    pub(crate) agg: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) field: Option<String>,
    pub(crate) alias: String,
}

impl Plan {
    /// Returns the arguments of the tool call for a class of the data service.
    pub(crate) fn arguments(&self, class_id: &str) -> Value {
        let mut arguments = json!({
            "class_id": class_id, "filters": self.filters,
            "page": self.page, "page_size": self.page_size, "sort_order": self.sort_order,
        });
        match self.mode {
            Mode::Query => {
                if let Some(field) = &self.sort_field {
                    arguments["sort_field"] = json!(field);
                }
            }
            Mode::GroupAnalysis => {
                arguments["group_by"] = json!(self.group_by);
                arguments["metrics"] = json!(self.metrics);
                arguments["sort_by"] = json!(self.sort_field);
            }
        }
        arguments
    }
}
