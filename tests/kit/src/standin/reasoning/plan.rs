//! Plans for the data of a question, on the attributes of a class.

use serde_json::{Value, json};

use super::condition::{about, conditions};
use super::words::STATISTICS;

/// Words in the names of attributes by which rows can be grouped.
const GROUPS: &[&str] = &["区域", "等级", "状态", "部门", "类型", "型号", "站点", "商品"];

/// Returns a plan in the format of the application.
pub(super) fn plan(query: &str, attributes: &Value, today: &str) -> Value {
    let attributes = attributes.as_array().cloned().unwrap_or_default();
    let is_analysis = STATISTICS.iter().any(|word| query.contains(word));
    let filters = conditions(query, &attributes, today);
    let amount = about(&attributes, "金额");
    let limit = first_of(query);
    if !is_analysis {
        let sorted = limit.is_some() || query.contains("最高") || query.contains("最大");
        let sort_field = amount.filter(|_| sorted);
        return json!({ "mode": "query", "filters": filters, "group_by": [], "metrics": [],
            "page": 1, "page_size": limit, "sort_field": sort_field,
            "sort_order": sort_field.map(|_| "desc") });
    }
    let words = GROUPS.iter().filter(|word| query.contains(*word));
    let group_by: Vec<&str> = words.filter_map(|word| about(&attributes, word)).collect();
    let agg = if query.contains("平均") { "avg" } else { "sum" };
    let metric = match amount.filter(|_| query.contains("金额") || query.contains("总额")) {
        Some(field) => json!({ "agg": agg, "field": field, "alias": format!("{agg}_{field}") }),
        None => json!({ "agg": "count", "field": null, "alias": "count" }),
    };
    json!({ "mode": "group-analysis", "filters": filters, "group_by": group_by,
            "metrics": [metric], "page": 1, "page_size": limit, "sort_field": null,
            "sort_order": null })
}

/// Parses the number in `前 5` or `前5个`.
fn first_of(query: &str) -> Option<u64> {
    let (_, rest) = query.split_once('前')?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::plan;

    fn attributes() -> Value {
        json!([
            {"name": "客户名称", "field_name": "customer_name"}, {"name": "客户电话", "field_name": "phone"},
            {"name": "客户区域", "field_name": "region"}, {"name": "订单金额", "field_name": "amount"},
            {"name": "订单状态", "field_name": "status"}, {"name": "订单编号", "field_name": "order_no"},
        ])
    }

    #[test]
    fn statistics_are_grouped_and_rankings_are_sorted() {
        let found = plan("按状态统计订单金额", &attributes(), "2025-01-15");
        assert_eq!(
            (&found["mode"], &found["group_by"]),
            (&json!("group-analysis"), &json!(["status"]))
        );
        assert_eq!(found["metrics"][0]["alias"], "sum_amount");
        let found = plan("金额最高的前 5 个订单", &attributes(), "2025-01-15");
        assert_eq!((&found["page_size"], &found["sort_field"]), (&json!(5), &json!("amount")));
        assert_eq!(found["sort_order"], "desc");
    }
}
