//! Finds empty required fields.

use crate::currency;
use crate::state::{Row, TaskType, UNKNOWN_TICKER};

/// Returns the paths of missing fields, by row and then in the order of the required fields. A
/// currency is missing if it is empty and does not follow from the ticker.
pub(crate) fn fields(task: TaskType, rows: &[Row]) -> Vec<String> {
    let mut missing = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        for field in task.required_fields() {
            if row.is_empty(field) || row.text(field) == UNKNOWN_TICKER {
                missing.push(format!("rows[{index}].{field}"));
            }
        }
        if currency::is_missing(row) {
            missing.push(format!("rows[{index}].currency"));
        }
    }
    missing
}
