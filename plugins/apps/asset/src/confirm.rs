//! Checks of a confirmed table before it is written.

use serde_json::Value;
use wattle_plugin::prelude::{Failure, json};

use crate::state::{ConfirmedData, Row, TaskType, UNKNOWN_TICKER};
use crate::{currency, date};

/// Failure code of a table that cannot be written. `details.fields` lists the invalid fields. The
/// interrupt is pending again afterwards.
pub(crate) const VALIDATION: &str = "validation";

/// Key of the message for users in the details of a failure. The failure's own message also names
/// the node, which users do not know.
pub(crate) const REASON: &str = "reason";

/// Database table of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Operation,
    Holding,
}

/// Returns the failure of a table with invalid fields.
pub(crate) fn wrong(fields: &[String]) -> Failure {
    refused(&format!("确认数据有误，请检查：{}", fields.join("、")), fields)
}

fn refused(reason: &str, fields: &[String]) -> Failure {
    let details = json!({ "fields": fields, REASON: reason });
    Failure::new(VALIDATION, reason).with_details(details)
}

/// Returns the fields of an answer that are missing or have the wrong type. [`check`] validates
/// their content.
pub(crate) fn misshapen(confirmed: &Value) -> Vec<String> {
    let is_table = |rows: &Value| rows.as_array().is_some_and(|r| r.iter().all(Value::is_object));
    let kind = confirmed.get("type");
    let has_kind = kind.is_some_and(|kind| !kind.is_null());
    let is_kind = matches!(kind.and_then(Value::as_str), Some("operation" | "holding" | "unknown"));
    let checks = [
        ("rows", confirmed.get("rows").is_some_and(is_table)),
        ("riskCategory", confirmed.get("riskCategory").is_some_and(Value::is_string)),
        ("portfolioId", confirmed.get("portfolioId").is_some_and(Value::is_i64)),
        ("type", is_kind || !has_kind),
    ];
    checks.into_iter().filter(|(_, fits)| !fits).map(|(field, _)| field.to_owned()).collect()
}

/// Validates the content and returns the table of the rows.
///
/// # Errors
///
/// [`VALIDATION`] with all invalid fields.
pub(crate) fn check(task: TaskType, confirmed: &ConfirmedData) -> Result<Table, Failure> {
    if confirmed.rows.is_empty() {
        return Err(wrong(&["rows".to_owned()]));
    }
    let table = table(task, confirmed)?;
    let mut fields = Vec::new();
    for (index, row) in confirmed.rows.iter().enumerate() {
        let of_row = |field: &&str| format!("rows[{index}].{field}");
        fields.extend(wrong_fields(table, row).iter().map(of_row));
    }
    if fields.is_empty() { Ok(table) } else { Err(wrong(&fields)) }
}

/// Returns the table that the user chose, otherwise the table of the input's task, otherwise the
/// table that the fields of all rows determine.
fn table(task: TaskType, confirmed: &ConfirmedData) -> Result<Table, Failure> {
    let all = |fields: &[&str]| {
        confirmed.rows.iter().all(|row| fields.iter().all(|field| row.has(field)))
    };
    let said = confirmed.kind.filter(|kind| *kind != TaskType::Unknown).unwrap_or(task);
    match said {
        TaskType::Operation => Ok(Table::Operation),
        TaskType::Holding => Ok(Table::Holding),
        TaskType::Unknown => match (all(&["action", "price"]), all(&["costPrice"])) {
            (true, false) => Ok(Table::Operation),
            (false, true) => Ok(Table::Holding),
            _ => {
                let reason = "无法判断这些记录是交易还是持仓，请补充完整或指定类型";
                Err(refused(reason, &["type".to_owned()]))
            }
        },
    }
}

fn wrong_fields(table: Table, row: &Row) -> Vec<&'static str> {
    let ticker = row.text("ticker");
    let has_ticker = !ticker.is_empty() && !ticker.eq_ignore_ascii_case(UNKNOWN_TICKER);
    let is_action = matches!(row.text("action"), "buy" | "sell");
    let has_currency = !currency::is_missing(row);
    let has_day = row.is_empty("tradedAt") || date::normalize(row.text("tradedAt")).is_some();
    let checks: &[(&'static str, bool)] = match table {
        Table::Operation => &[
            ("action", is_action),
            ("ticker", has_ticker),
            ("quantity", row.number("quantity").is_some()),
            ("price", row.number("price").is_some()),
            ("currency", has_currency),
            ("tradedAt", has_day),
        ],
        Table::Holding => &[
            ("ticker", has_ticker),
            ("quantity", row.number("quantity").is_some()),
            ("costPrice", row.number("costPrice").is_some()),
            ("currency", has_currency),
        ],
    };
    checks.iter().filter(|(_, fits)| !fits).map(|(field, _)| *field).collect()
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json};

    use super::{Table, check, misshapen};
    use crate::state::TaskType;

    /// Returns the table, or the invalid fields.
    fn checked(task: TaskType, rows: Value, kind: Option<&str>) -> Result<Table, Value> {
        let confirmed = json!({"rows": rows, "riskCategory": "r", "portfolioId": 1, "type": kind});
        check(task, &serde_json::from_value(confirmed).unwrap())
            .map_err(|failure| failure.details.unwrap()["fields"].clone())
    }

    fn trade() -> Value {
        json!({"action": "buy", "ticker": "AAPL", "quantity": 1, "price": 2.5})
    }

    fn holding() -> Value {
        json!({"ticker": "AAPL", "quantity": 1, "costPrice": 0})
    }

    #[test]
    fn table_follows_from_the_user_or_the_task() {
        assert_eq!(checked(TaskType::Operation, json!([trade()]), None), Ok(Table::Operation));
        assert_eq!(checked(TaskType::Holding, json!([holding()]), None), Ok(Table::Holding));
        let both =
            json!([{"action": "buy", "ticker": "A", "quantity": 1, "price": 1, "costPrice": 1}]);
        assert_eq!(checked(TaskType::Unknown, both, Some("holding")), Ok(Table::Holding));
        let expected = Ok(Table::Operation);
        assert_eq!(checked(TaskType::Holding, json!([trade()]), Some("operation")), expected);
    }

    #[test]
    fn table_of_an_unknown_task_follows_from_the_fields_of_all_rows() {
        let expected = Ok(Table::Operation);
        assert_eq!(checked(TaskType::Unknown, json!([trade(), trade()]), None), expected);
        assert_eq!(checked(TaskType::Unknown, json!([holding()]), None), Ok(Table::Holding));
        for rows in [json!([trade(), holding()]), json!([{"ticker": "A", "quantity": 1}])] {
            assert_eq!(checked(TaskType::Unknown, rows, None), Err(json!(["type"])));
        }
    }

    #[test]
    fn all_invalid_fields_are_listed() {
        let rows = json!([
            trade(),
            {"action": "hold", "ticker": "UNKNOWN", "quantity": "x", "price": null,
             "tradedAt": "soon"},
            {"action": "sell", "ticker": " ", "quantity": 0, "price": 0, "tradedAt": ""},
        ]);
        assert_eq!(
            checked(TaskType::Operation, rows, None),
            Err(json!([
                "rows[1].action",
                "rows[1].ticker",
                "rows[1].quantity",
                "rows[1].price",
                "rows[1].tradedAt",
                "rows[2].ticker"
            ]))
        );
        assert_eq!(
            checked(TaskType::Holding, json!([trade()]), None),
            Err(json!(["rows[0].costPrice"]))
        );
        assert_eq!(checked(TaskType::Operation, json!([]), None), Err(json!(["rows"])));
    }

    #[test]
    fn s0_45_s0_68_code_of_an_unknown_exchange_requires_a_currency() {
        let mut trade = trade();
        trade["ticker"] = json!("LON:VOD");
        let mut holding = holding();
        holding["ticker"] = json!("113050");
        let fields = Err(json!(["rows[0].currency"]));
        assert_eq!(checked(TaskType::Operation, json!([trade]), None), fields);
        assert_eq!(checked(TaskType::Holding, json!([holding]), None), fields);
        trade["currency"] = json!("gbp");
        assert_eq!(checked(TaskType::Operation, json!([trade]), None), Ok(Table::Operation));
        trade["ticker"] = json!("unknown");
        let fields = Err(json!(["rows[0].ticker"]));
        assert_eq!(checked(TaskType::Operation, json!([trade]), None), fields);
    }

    #[test]
    fn malformed_answers_are_reported_by_field() {
        assert_eq!(misshapen(&json!({"rows": [], "riskCategory": "", "portfolioId": 1})), [""; 0]);
        let expected = ["rows", "riskCategory", "portfolioId", "type"];
        assert_eq!(misshapen(&json!({"rows": [1], "portfolioId": "1", "type": "x"})), expected);
        assert_eq!(misshapen(&json!(null)), ["rows", "riskCategory", "portfolioId"]);
    }
}
