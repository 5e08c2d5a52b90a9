//! Summaries of a result in one sentence with its values.

use serde_json::{Value, json};

/// Maximum number of values in a summary.
const FIGURES: usize = 3;

pub(super) fn answer(facts: &Value) -> Value {
    json!({ "summary": text(facts) })
}

fn text(facts: &Value) -> String {
    let count = facts["row_count"].as_u64().unwrap_or_default();
    match facts["reason_code"].as_str() {
        Some("intent_is_chat") => {
            "你好！我可以帮你查询订单、客户和商品的数据，例如“2024年每月的销售额”。".to_owned()
        }
        Some("empty_result_after_retry") => {
            "没有查到符合条件的数据，可以放宽时间范围或核对筛选条件。".to_owned()
        }
        Some("zero_metric_after_retry") => {
            "符合条件的统计结果为 0，可以换一个时间范围再看。".to_owned()
        }
        Some(_) => "这次没能完成查询，请换一种说法再试。".to_owned(),
        None => format!("共查询到 {count} 行数据，其中{}。", first(&facts["rows"][0])),
    }
}

fn first(row: &Value) -> String {
    let fields = row.as_object().into_iter().flatten().take(FIGURES);
    let shown = fields.map(|(name, value)| match value {
        Value::String(text) => format!("{name} 为 {text}"),
        other => format!("{name} 为 {other}"),
    });
    shown.collect::<Vec<_>>().join("，")
}
