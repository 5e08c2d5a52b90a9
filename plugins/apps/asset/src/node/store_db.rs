//! `store_db`: writes the confirmed rows in one transaction.

use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, clock, json, node,
};

use crate::insert::Insertion;
use crate::state::{ConfirmedData, StoreResult, TaskType};
use crate::{confirm, date};

/// Failure code of a transaction that failed.
const STORE: &str = "store";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Input {
    task: TaskType,
    confirmed_data: ConfirmedData,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Update {
    store_result: StoreResult,
}

/// Writes the confirmed rows and a log entry in one transaction.
#[node]
pub(crate) fn store_db(context: &Context, input: Input) -> Result<Update, Failure> {
    let confirmed = &input.confirmed_data;
    let table = confirm::check(input.task, confirmed)?;
    let (day, now) = (date::today()?, clock::utc_seconds(clock::now_ms()));
    let insertion = Insertion { table, confirmed, today: &day, now: &now };
    let ids =
        insertion.execute(&context.thread_id).map_err(|failure| match failure.code.as_str() {
            confirm::VALIDATION => failure,
            _ => Failure::new(STORE, &failure.message)
                .with_details(json!({ confirm::REASON: failure.message, "cause": failure })),
        })?;
    Ok(Update { store_result: StoreResult { success: true, ids } })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::node::Decision;
    use wattle_plugin::prelude::{Context, Failure, Value, json, params};
    use wattle_plugin::sql;
    use wattle_plugin::testing::{FakeHost, SqlAnswer, run_node};

    use super::store_db;
    use crate::testing;

    /// A database with portfolio 1 that numbers rows from 11 and rejects a quantity of 0.
    fn host() -> FakeHost {
        let mut next_id = 10;
        testing::host().sql(move |statement| {
            let is_zero = statement.parameters.contains(&sql::Value::Real(0.0));
            if statement.text.starts_with("SELECT") {
                let is_there = statement.parameters == params![1_i64];
                let rows = if is_there { vec![params![1]] } else { Vec::new() };
                return Ok(sql::Rows::new(["id"], rows).into());
            }
            if statement.text.contains("OperationLog") {
                return Ok(SqlAnswer::affected(1));
            }
            if is_zero {
                return Err(Failure::conflict("CHECK constraint failed: quantity").retryable());
            }
            next_id += 1;
            Ok(sql::Rows::new(["id"], vec![params![next_id]]).into())
        })
    }

    fn run(host: &FakeHost, task: &str, confirmed: Value) -> Result<Decision, Failure> {
        let context = Context { thread_id: "thread-1".to_owned(), ..Context::default() };
        let input = json!({"task": task, "confirmedData": confirmed});
        host.run(|| run_node::<store_db>(&context, &input))
    }

    fn confirmed(rows: Value, portfolio: i64) -> Value {
        json!({"rows": rows, "riskCategory": "aggressive", "portfolioId": portfolio})
    }

    fn texts(host: &FakeHost) -> Vec<String> {
        let first = |text: &str| text.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        host.statements().iter().map(|statement| first(&statement.text)).collect()
    }

    #[test]
    fn rows_and_log_entry_are_written_in_one_transaction() {
        let host = host();
        let rows = json!([
            {"ticker": "0700.HK", "name": "腾讯", "action": "buy", "quantity": 100, "price": 320,
             "currency": "hkd", "tradedAt": "2025-01-14", "memo": "首笔"},
            {"ticker": "9992.HK", "name": "泡泡玛特", "action": "sell", "quantity": 1, "price": 2,
             "currency": "", "tradedAt": null},
        ]);
        let decision = run(&host, "operation", confirmed(rows.clone(), 1)).unwrap();
        assert_eq!(
            decision.update("storeResult"),
            Some(&json!({"success": true, "ids": [11, 12]}))
        );
        assert_eq!(
            texts(&host),
            [
                "BEGIN",
                "SELECT \"id\" FROM",
                "INSERT INTO \"Operation\"",
                "INSERT INTO \"Operation\"",
                "INSERT INTO \"OperationLog\"",
                "COMMIT"
            ]
        );
        let statements = host.statements();
        assert!(statements.iter().all(|statement| statement.in_transaction));
        assert_eq!(
            statements[2].parameters,
            params![
                "buy",
                320.0,
                "2025-01-14",
                "首笔",
                "0700.HK",
                "腾讯",
                100.0,
                "HKD",
                "aggressive",
                1_i64,
                "2025-01-15T02:30:45Z"
            ]
        );
        assert_eq!(statements[3].parameters[2..4], params!["2025-01-15", None::<&str>]);
        assert_eq!(statements[3].parameters[7], sql::Value::from("HKD"));
        let log = params![
            "asset_graph.store",
            "thread-1",
            1_i64,
            "aggressive",
            rows,
            "2025-01-15T02:30:45Z"
        ];
        assert_eq!(statements[4].parameters, log);
    }

    #[test]
    fn holdings_are_written_to_their_table() {
        let host = host();
        let rows = json!([{"ticker": "AAPL", "name": "", "quantity": 1, "costPrice": 9.5}]);
        run(&host, "unknown", confirmed(rows, 1)).unwrap();
        assert_eq!(texts(&host)[2], "INSERT INTO \"Holding\"");
    }

    #[test]
    fn s0_45_rows_without_a_currency_are_rejected() {
        let host = host();
        let row = |currency: &str| json!({"ticker": "LON:VOD", "quantity": 1, "costPrice": 1, "currency": currency});
        let failure = run(&host, "holding", confirmed(json!([row("")]), 1)).unwrap_err();
        assert_eq!(failure.details.unwrap()["fields"], json!(["rows[0].currency"]));
        assert!(host.statements().is_empty());
        run(&host, "holding", confirmed(json!([row("gbp")]), 1)).unwrap();
        assert_eq!(host.statements()[2].parameters[4], sql::Value::from("GBP"));
    }

    #[test]
    fn rejected_row_rolls_back_the_transaction() {
        let host = host();
        let row = |quantity: i64| json!({"ticker": "A", "quantity": quantity, "costPrice": 1});
        let rows = json!([row(1), row(2), row(0)]);
        let failure = run(&host, "holding", confirmed(rows, 1)).unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("store", false));
        let details = failure.details.unwrap();
        assert_eq!(details["reason"], "CHECK constraint failed: quantity");
        assert_eq!(details["cause"]["code"], "conflict");
        assert_eq!(texts(&host).last().unwrap(), "ROLLBACK");
        assert!(!texts(&host).contains(&"COMMIT".to_owned()));
    }

    #[test]
    fn invalid_data_is_rejected_before_any_write() {
        let host = host();
        let failure = run(&host, "holding", confirmed(json!([]), 1)).unwrap_err();
        assert_eq!(failure.code, "validation");
        assert!(host.statements().is_empty());
        let rows = json!([{"ticker": "AAPL", "quantity": 1, "costPrice": 1}]);
        let failure = run(&host, "holding", confirmed(rows, 7)).unwrap_err();
        assert_eq!(failure.details.unwrap()["fields"], json!(["portfolioId"]));
        assert_eq!(texts(&host), ["BEGIN", "SELECT \"id\" FROM", "ROLLBACK"]);
    }
}
