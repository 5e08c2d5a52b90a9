//! The tool `saveExpenseToLark`. It returns a document with a `status` for every call.

use serde_json::{Value, json};
use wattle_plugin::clock::ZoneSetting;
use wattle_plugin::log::{self, Level};
use wattle_plugin::prelude::{Failure, ToolContext, ToolOutput, Unchecked, clock, tool};

use crate::bitable::{Refusal, Table};
use crate::client_token::client_token;
use crate::expense::{Arguments, Expense};

/// Time zone of the field `time` of the output.
const ZONE: ZoneSetting = ZoneSetting::new("date_time_zone").with_default("Asia/Shanghai");

/// 把一笔支出或收入保存到飞书多维表格。
#[tool(name = "saveExpenseToLark")]
pub(crate) fn save_expense_to_lark(
    context: &ToolContext,
    args: Unchecked<Arguments>,
) -> Result<ToolOutput, Failure> {
    let expense = match Expense::read(&args.raw) {
        Ok(expense) => expense,
        Err(reason) => return failed(&format!("记账失败：{reason}"), None),
    };
    let Some(table) = Table::of_settings()? else {
        return failed(
            "记账失败：飞书多维表格未配置，请设置 lark_app_token 和 lark_table_id",
            None,
        );
    };
    let date_ms = expense.date_ms.unwrap_or_else(clock::now_ms);
    let fields = json!({
        "备注": expense.remark,
        "分类": expense.category,
        "金额": number(expense.amount),
        "收支": expense.kind.label(),
        "日期": date_ms,
    });
    match table.create(&fields, &client_token(context)) {
        Ok(record_id) => ToolOutput::json(&json!({
            "status": "success",
            "message": "记账成功",
            "data": { "record_id": record_id, "fields": fields, "time": civil_text(date_ms)? },
        })),
        Err(Refusal { message, code }) => {
            log::write(
                Level::Warn,
                "cannot save an expense",
                &[("code", json!(code)), ("reason", json!(message))],
            );
            failed(&format!("记账失败：{message}"), code)
        }
    }
}

/// Returns an error document for the model.
pub(crate) fn failed(message: &str, code: Option<i64>) -> Result<ToolOutput, Failure> {
    let mut document = json!({ "status": "error", "message": message });
    if let Some(code) = code {
        document["data"] = json!({ "code": code });
    }
    ToolOutput::json(&document)
}

/// Converts an amount. Whole amounts have no decimal point, as people write them.
fn number(amount: f64) -> Value {
    /// Integers below this limit are exact as `f64`.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if amount.fract() == 0.0 && amount < EXACT { json!(amount as i64) } else { json!(amount) }
}

/// Formats a timestamp as civil time, because models cannot calculate it.
fn civil_text(date_ms: i64) -> Result<String, Failure> {
    let civil = clock::to_zone(date_ms, ZONE.zone()?.as_deref())?.civil;
    Ok(format!("{} {}", civil.date(), civil.time()))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::http::{Body, Response};
    use wattle_plugin::prelude::{Failure, ToolContext, Value, json};
    use wattle_plugin::testing::{self, FakeHost};

    use super::save_expense_to_lark;

    const NOW_MS: i64 = 1_736_908_245_123;

    fn host() -> FakeHost {
        FakeHost::new()
            .now_ms(NOW_MS)
            .zone("Asia/Shanghai", 28_800)
            .setting("lark_app_token", "app1")
            .setting("lark_table_id", "tbl1")
            .http(|_| {
                let record = json!({"record": {"record_id": "rec1"}});
                Ok(Response::new(200, json!({"code": 0, "data": record}).to_string()))
            })
    }

    fn call(host: &FakeHost, arguments: &Value) -> Value {
        let context = ToolContext { task_id: Some("t".to_owned()), ..ToolContext::default() };
        let call = || testing::call_tool::<save_expense_to_lark>(&context, arguments);
        host.run(call).unwrap().structured.unwrap()
    }

    #[test]
    fn record_has_the_fields_of_the_table() {
        let host = host();
        let date = 1_736_784_000_000_i64;
        let said = json!({"remark": "打车", "category": "交通", "amount": 20, "date": date});
        let fields =
            json!({"备注": "打车", "分类": "交通", "金额": 20, "收支": "支出", "日期": date});
        let data = json!({"record_id": "rec1", "fields": fields, "time": "2025-01-14 00:00:00"});
        let answer = json!({"status": "success", "message": "记账成功", "data": data});
        assert_eq!(call(&host, &said), answer);
        let Body::Text(sent) = &host.http_requests()[0].body else { panic!("no text") };
        assert_eq!(serde_json::from_str::<Value>(sent).unwrap(), json!({ "fields": fields }));
    }

    #[test]
    fn date_defaults_to_now() {
        let said = json!({"remark": "工资", "category": "工资", "amount": 0.5, "type": "income"});
        let answer = call(&host(), &said);
        assert_eq!(answer["data"]["fields"]["日期"], NOW_MS);
        assert_eq!(answer["data"]["fields"]["收支"], "收入");
        assert_eq!(answer["data"]["fields"]["金额"], 0.5);
        assert_eq!(answer["data"]["time"], "2025-01-15 10:30:45");
    }

    #[test]
    fn failures_are_documents() {
        let said = json!({"remark": "打车", "category": "交通", "amount": 20});
        let answer = call(&host(), &json!({"remark": "打车"}));
        assert_eq!(answer["status"], "error");
        let answer = call(&host().setting("lark_app_token", ""), &said);
        assert!(answer["message"].as_str().unwrap().contains("未配置"), "{answer}");
        let host = host().http(|_| Err(Failure::new("denied", "no")));
        let answer = call(&host, &said);
        assert!(answer["message"].as_str().unwrap().starts_with("记账失败："), "{answer}");
        assert_eq!(host.logged().len(), 1);
    }

    #[test]
    fn models_see_the_categories() {
        let schema = testing::tool_schema::<save_expense_to_lark>();
        assert_eq!(schema["required"], json!(["remark", "category", "amount"]));
        assert_eq!(schema["properties"]["category"]["enum"].as_array().unwrap().len(), 15);
    }
}
