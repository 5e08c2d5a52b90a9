//! Types of the state channels. Field names are those of the JSON documents.

use serde_json::{Map, Number};
use wattle_plugin::prelude::{Deserialize, JsonSchema, Serialize, Value};

/// Ticker of a row whose security no source knows.
pub(crate) const UNKNOWN_TICKER: &str = "UNKNOWN";

/// Type of the input that is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InputType {
    Image,
    Text,
}

/// Kind of the input: trades, holdings or neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TaskType {
    Operation,
    Holding,
    #[default]
    Unknown,
}

impl TaskType {
    /// Returns the kind of input that a label of a classifier means. The older labels
    /// `trade_record` and `position` are accepted. An unknown label means `Unknown`.
    pub(crate) fn from_label(label: &str) -> Self {
        match label.trim() {
            "operation" | "trade_record" => Self::Operation,
            "holding" | "position" => Self::Holding,
            _ => Self::Unknown,
        }
    }

    /// Returns the fields that a row must have, in the order in which missing ones are reported.
    pub(crate) fn required_fields(self) -> &'static [&'static str] {
        match self {
            Self::Operation => &["ticker", "quantity", "price"],
            Self::Holding => &["ticker", "quantity", "costPrice"],
            Self::Unknown => &[],
        }
    }
}

/// Direction of a trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    Buy,
    Sell,
}

/// A trade. Values that were not found are `null`, or empty for texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OperationItem {
    pub(crate) ticker: String,
    pub(crate) name: String,
    pub(crate) action: Action,
    pub(crate) quantity: Option<Number>,
    /// Quantity in board lots, until `enrich` converts it into shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lots: Option<Number>,
    pub(crate) price: Option<Number>,
    pub(crate) currency: String,
    pub(crate) traded_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) memo: Option<String>,
}

/// A holding. Values that were not found are `null`, or empty for texts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HoldingItem {
    pub(crate) ticker: String,
    pub(crate) name: String,
    pub(crate) quantity: Option<Number>,
    /// Quantity in board lots, until `enrich` converts it into shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lots: Option<Number>,
    pub(crate) cost_price: Option<Number>,
    pub(crate) currency: String,
}

/// A trade or a holding as JSON, for nodes that handle both and for edits of users.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Row(Map<String, Value>);

impl Row {
    /// Returns a text field, trimmed, which is empty if the field is missing or not a string.
    pub(crate) fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default().trim()
    }

    /// Returns a number field, or `None` if the field is missing or not a finite number.
    pub(crate) fn number(&self, field: &str) -> Option<f64> {
        self.0.get(field).and_then(Value::as_f64).filter(|number| number.is_finite())
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        !self.is_empty(field)
    }

    /// Returns true if a field is missing, `null` or blank. The number 0 is a value.
    pub(crate) fn is_empty(&self, field: &str) -> bool {
        match self.0.get(field) {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.trim().is_empty(),
            Some(_) => false,
        }
    }

    /// Removes a field. Returns its value if that is a number.
    pub(crate) fn take_number(&mut self, field: &str) -> Option<Number> {
        match self.0.remove(field) {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.0.insert(field.to_owned(), value.into());
    }
}

/// The review that the user gets. Earlier nodes collect warnings and missing fields in it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReviewPayload {
    #[serde(rename = "type")]
    pub(crate) kind: TaskType,
    pub(crate) rows: Vec<Row>,
    pub(crate) missing_fields: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

impl ReviewPayload {
    /// Adds a warning, unless the payload already has it.
    pub(crate) fn warned(earlier: Option<Self>, warning: impl Into<String>) -> Self {
        let mut payload = earlier.unwrap_or_default();
        let warning = warning.into();
        if !payload.warnings.contains(&warning) {
            payload.warnings.push(warning);
        }
        payload
    }

    /// Adds warnings. Returns `None` if there are none, so that the node writes no payload.
    pub(crate) fn with_warnings(earlier: Option<Self>, warnings: Vec<String>) -> Option<Self> {
        let mut warnings = warnings.into_iter();
        let payload = Self::warned(earlier, warnings.next()?);
        Some(warnings.fold(payload, |payload, warning| Self::warned(Some(payload), warning)))
    }
}

/// The data that the user confirmed. `confirm` validates the values, so that one response can list
/// all invalid fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfirmedData {
    pub(crate) rows: Vec<Row>,
    pub(crate) risk_category: String,
    pub(crate) portfolio_id: i64,
    /// Kind of the rows. It takes precedence over the kind of the input.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<TaskType>,
}

/// Result of the write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct StoreResult {
    pub(crate) success: bool,
    pub(crate) ids: Vec<i64>,
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::{ReviewPayload, Row, TaskType};

    #[test]
    fn labels_of_both_vocabularies_are_accepted() {
        for (label, task) in [
            ("trade_record", TaskType::Operation),
            ("operation", TaskType::Operation),
            ("position", TaskType::Holding),
            ("holding", TaskType::Holding),
            ("receipt", TaskType::Unknown),
            ("", TaskType::Unknown),
        ] {
            assert_eq!(TaskType::from_label(label), task, "{label}");
        }
    }

    #[test]
    fn zero_is_a_value_and_blank_is_empty() {
        let row = json!({"a": 0, "b": "  ", "c": null, "d": "x", "e": false});
        let row: Row = serde_json::from_value(row).unwrap();
        let empty: Vec<_> = ["a", "b", "c", "d", "e", "f"]
            .into_iter()
            .filter(|field| row.is_empty(field))
            .collect();
        assert_eq!(empty, ["b", "c", "f"]);
    }

    #[test]
    fn repeated_warnings_are_added_once() {
        let payload = ReviewPayload::warned(None, "a");
        let payload = ReviewPayload::warned(Some(payload), "b");
        let payload = ReviewPayload::warned(Some(payload), "a");
        assert_eq!(payload.warnings, ["a", "b"]);
        let warnings = ["b", "c"].map(str::to_owned).into();
        let payload = ReviewPayload::with_warnings(Some(payload), warnings).unwrap();
        assert_eq!(payload.warnings, ["a", "b", "c"]);
        assert_eq!(ReviewPayload::with_warnings(Some(payload), Vec::new()), None);
    }
}
