//! The tool `listExpensesFromLark`: the bookings of a period, for programs.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use wattle_plugin::log::{self, Level};
use wattle_plugin::prelude::{Failure, ToolContext, ToolOutput, tool};

use crate::bitable::{Refusal, Table};
use crate::save::failed;

/// Maximum length of a period in milliseconds: a year.
const LONGEST_MS: i64 = 366 * 24 * 3_600_000;

/// A period.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Period {
    /// 开始时间，13 位毫秒时间戳
    #[schemars(range(min = 0))]
    from: i64,
    /// 结束时间（不含），13 位毫秒时间戳
    #[schemars(range(min = 0))]
    to: i64,
}

/// 读取飞书多维表格中一段时间内的收支记录，最新的在前。
#[tool(name = "listExpensesFromLark")]
pub(crate) fn list_expenses_from_lark(
    _context: &ToolContext,
    period: Period,
) -> Result<ToolOutput, Failure> {
    let Period { from, to } = period;
    if from >= to || to.saturating_sub(from) > LONGEST_MS {
        return failed("读取失败：from 必须早于 to，且最多相隔 366 天", None);
    }
    let Some(table) = Table::of_settings()? else {
        return failed(
            "读取失败：飞书多维表格未配置，请设置 lark_app_token 和 lark_table_id",
            None,
        );
    };
    match table.search(from, to) {
        Ok(found) => {
            let message = format!("共 {} 笔", found.records.len());
            let data = json!({ "bookings": found.records, "truncated": found.truncated });
            ToolOutput::json(&json!({ "status": "success", "message": message, "data": data }))
        }
        Err(Refusal { message, code }) => {
            log::write(
                Level::Warn,
                "cannot read the expenses",
                &[("code", json!(code)), ("reason", json!(message))],
            );
            failed(&format!("读取失败：{message}"), code)
        }
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::http::Response;
    use wattle_plugin::prelude::{ToolContext, Value, json};
    use wattle_plugin::testing::{self, FakeHost};

    use super::{LONGEST_MS, list_expenses_from_lark};

    fn host(kind: &'static str) -> FakeHost {
        FakeHost::new().setting("lark_app_token", "app1").setting("lark_table_id", "tbl1").http(
            move |_| {
                let fields = json!({"备注": [{"text": "午饭", "type": "text"}], "分类": "餐饮",
                    "收支": kind, "日期": 5});
                let data = json!({"items": [{"record_id": "rec1", "fields": fields}]});
                Ok(Response::new(200, json!({"code": 0, "data": data}).to_string()))
            },
        )
    }

    fn call(host: &FakeHost, from: i64, to: i64) -> Value {
        let arguments = json!({"from": from, "to": to});
        let call =
            || testing::call_tool::<list_expenses_from_lark>(&ToolContext::default(), &arguments);
        host.run(call).unwrap().structured.unwrap()
    }

    #[test]
    fn rows_become_bookings_with_null_for_empty_cells() {
        for (label, kind) in [("收入", "income"), ("支出", "consume"), ("", "consume")] {
            let booking = json!({"id": "rec1", "remark": "午饭", "category": "餐饮",
                "amount": null, "type": kind, "date": 5});
            let data = json!({"bookings": [booking], "truncated": false});
            let answer = json!({"status": "success", "message": "共 1 笔", "data": data});
            assert_eq!(call(&host(label), 0, 10), answer);
        }
    }

    #[test]
    fn failures_are_documents() {
        for (from, to) in [(10, 10), (10, 5), (0, LONGEST_MS + 1)] {
            let host = host("支出");
            assert_eq!(call(&host, from, to)["status"], "error");
            assert!(host.http_requests().is_empty());
        }
        let unset = host("支出").setting("lark_table_id", "");
        let answer = call(&unset, 0, 10);
        assert!(answer["message"].as_str().unwrap().contains("lark_table_id"), "{answer}");
        let busy = host("支出").http(|_| Ok(Response::new(200, r#"{"code": 403, "msg": "no"}"#)));
        let answer = call(&busy, 0, 10);
        assert_eq!(answer["data"]["code"], 403);
        assert_eq!(busy.logged().len(), 1);
    }
}
