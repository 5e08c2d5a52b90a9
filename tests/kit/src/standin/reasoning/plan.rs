//! How to get the data that a question asks for, over the attributes of a class.

use serde_json::{Value, json};

use super::words::{STATISTICS, pieces};

/// Values that the stand-in's data knows, by the word in the attribute's name.
const VALUES: &[(&str, &[&str])] = &[
    ("区域", &["华东", "华南", "华北", "西南"]),
    ("等级", &["金牌", "银牌", "普通"]),
    ("部门", &["销售部", "客服部", "运维部", "财务部"]),
    ("类型", &["投诉", "报修", "咨询"]),
    (
        "状态",
        &[
            "待付款",
            "已发货",
            "已完成",
            "已取消",
            "生效中",
            "已到期",
            "已终止",
            "在线",
            "离线",
            "故障",
            "处理中",
            "已关闭",
        ],
    ),
];

/// Words in the names of attributes by which groups are made.
const GROUPS: &[&str] = &["区域", "等级", "状态", "部门", "类型", "型号", "站点", "商品"];

/// A plan in the words that executors know.
pub(super) fn plan(query: &str, attributes: &Value) -> Value {
    let attributes = attributes.as_array().cloned().unwrap_or_default();
    let is_analysis = STATISTICS.iter().any(|word| query.contains(word));
    let filters = filters(query, &attributes);
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

fn filters(query: &str, attributes: &[Value]) -> Vec<Value> {
    let mut filters: Vec<Value> = Vec::new();
    let mut add = |field: Option<&str>, op: &str, value: Value| {
        if let Some(field) = field {
            filters.push(json!({ "field": field, "op": op, "value": value }));
        }
    };
    for piece in pieces(query) {
        if piece.len() == 11 && piece.chars().all(|c| c.is_ascii_digit()) {
            add(about(attributes, "电话"), "eq", json!(piece));
        } else if piece.contains(|c: char| c.is_ascii_digit()) && piece.is_ascii() {
            add(about(attributes, "编号"), "eq", json!(piece));
        }
    }
    for (word, values) in VALUES {
        let said: Vec<&&str> = values.iter().filter(|value| query.contains(**value)).collect();
        match said.as_slice() {
            [] => {}
            [one] => add(about(attributes, word), "eq", json!(one)),
            several => add(about(attributes, word), "in", json!(several)),
        }
    }
    if let Some(name) = name_in(query) {
        add(about(attributes, "客户名称"), "eq", json!(name));
    }
    filters
}

/// The name between the word for a customer and its possessive.
fn name_in(query: &str) -> Option<&str> {
    let (_, rest) = query.split_once("客户")?;
    let (name, _) = rest.split_once('的')?;
    ((2..=3).contains(&name.chars().count()) && !name.is_ascii()).then_some(name)
}

/// The number in `前 5` or `前5个`.
fn first_of(query: &str) -> Option<u64> {
    let (_, rest) = query.split_once('前')?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The field of the attribute that has a word in its name.
fn about<'a>(attributes: &'a [Value], word: &str) -> Option<&'a str> {
    let says = |known: &&Value| known["name"].as_str().is_some_and(|name| name.contains(word));
    attributes.iter().find(says)?["field_name"].as_str()
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
    fn values_become_filters() {
        let check = |query: &str, expected: Value| {
            assert_eq!(plan(query, &attributes())["filters"], expected, "{query}");
        };
        let eq = |field: &str, value: &str| json!([{"field": field, "op": "eq", "value": value}]);
        check("手机号13800138000的订单", eq("phone", "13800138000"));
        check("订单 SO-2024-0007", eq("order_no", "SO-2024-0007"));
        check("客户张伟的订单", eq("customer_name", "张伟"));
        check(
            "华东和华南的订单",
            json!([{"field": "region", "op": "in", "value": ["华东", "华南"]}]),
        );
    }

    #[test]
    fn numbers_are_grouped_and_largest_come_first() {
        let found = plan("按状态统计订单金额", &attributes());
        assert_eq!(
            (&found["mode"], &found["group_by"]),
            (&json!("group-analysis"), &json!(["status"]))
        );
        assert_eq!(found["metrics"][0]["alias"], "sum_amount");
        let found = plan("金额最高的前 5 个订单", &attributes());
        assert_eq!((&found["page_size"], &found["sort_field"]), (&json!(5), &json!("amount")));
        assert_eq!(found["sort_order"], "desc");
    }
}
