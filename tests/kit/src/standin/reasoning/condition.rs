//! Conditions of a question: included and excluded values, comparisons, periods.

use serde_json::{Value, json};

use super::words::pieces;

/// Values of the stand-in's data, by a word in the attribute's name.
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

/// Words before excluded values, and words after them.
const EXCEPT: &[(&str, &[&str])] =
    &[("除了", &["以外", "之外", "外"]), ("除", &["以外", "之外"]), ("不是", &["的"])];

/// Words of comparisons with a number. Longer ones precede shorter ones that they contain.
const COMPARED: &[(&str, &str)] = &[
    ("不低于", "gte"),
    ("不少于", "gte"),
    ("不超过", "lte"),
    ("不高于", "lte"),
    ("大于", "gt"),
    ("超过", "gt"),
    ("高于", "gt"),
    ("小于", "lt"),
    ("低于", "lt"),
];

/// Returns the conditions of a question on the attributes of a class. `today` is an ISO date.
pub(super) fn conditions(query: &str, attributes: &[Value], today: &str) -> Vec<Value> {
    let (meant, excluded) = split(query);
    let mut found = values(&meant, attributes, "eq", "in");
    if let Some(text) = excluded {
        found.extend(values(&text, attributes, "ne", "not_in"));
    }
    found.extend(compared(query, attributes));
    if let (Some(field), Some(period)) = (about(attributes, "日期"), period(query, today)) {
        found.push(json!({ "field": field, "op": "like", "value": period }));
    }
    found
}

/// Returns the field of the attribute whose name contains a word.
pub(super) fn about<'a>(attributes: &'a [Value], word: &str) -> Option<&'a str> {
    let says = |known: &&Value| known["name"].as_str().is_some_and(|name| name.contains(word));
    attributes.iter().find(says)?["field_name"].as_str()
}

/// Splits a question into the text without exclusions, and the excluded text.
fn split(query: &str) -> (String, Option<String>) {
    for (word, ends) in EXCEPT {
        let Some((before, rest)) = query.split_once(word) else { continue };
        let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
        return (format!("{before} {}", &rest[end..]), Some(rest[..end].to_owned()));
    }
    (query.to_owned(), None)
}

fn values(text: &str, attributes: &[Value], one: &str, several: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut add = |word: &str, values: &[String]| {
        let Some(field) = about(attributes, word) else { return };
        match values {
            [] => {}
            [only] => found.push(json!({ "field": field, "op": one, "value": only })),
            many => found.push(json!({ "field": field, "op": several, "value": many })),
        }
    };
    let pieces = pieces(text);
    let is_digit = |c: char| c.is_ascii_digit();
    let phones = pieces.iter().filter(|it| it.len() == 11 && it.chars().all(is_digit));
    add("电话", &phones.cloned().collect::<Vec<_>>());
    let is_code = |it: &&String| {
        it.is_ascii() && it.contains(is_digit) && it.contains(|c: char| c.is_ascii_alphabetic())
    };
    add("编号", &pieces.iter().filter(is_code).cloned().collect::<Vec<_>>());
    for (word, known) in VALUES {
        let said = known.iter().filter(|value| text.contains(**value));
        add(word, &said.map(|value| (*value).to_owned()).collect::<Vec<_>>());
    }
    add("客户名称", &name_in(text).map(str::to_owned).into_iter().collect::<Vec<_>>());
    found
}

/// Returns the name between the word for a customer and its possessive.
fn name_in(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("客户")?;
    let (name, _) = rest.split_once('的')?;
    ((2..=3).contains(&name.chars().count()) && !name.is_ascii()).then_some(name)
}

/// Returns the comparison of the amount with a number.
fn compared(query: &str, attributes: &[Value]) -> Option<Value> {
    let field = about(attributes, "金额")?;
    let (rest, op) =
        COMPARED.iter().find_map(|(word, op)| Some((query.split_once(word)?.1, *op)))?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    let value: u64 = digits.parse().ok()?;
    Some(json!({ "field": field, "op": op, "value": value }))
}

/// Returns the prefix of the dates in a named day, month or year.
fn period(query: &str, today: &str) -> Option<String> {
    let mut parts = today.split('-').map_while(|part| part.parse::<u32>().ok());
    let (year, month) = (parts.next()?, parts.next()?);
    let last = if month == 1 { (year - 1, 12) } else { (year, month - 1) };
    let has = |words: &[&str]| words.iter().any(|word| query.contains(word));
    if has(&["今天", "今日"]) {
        Some(today.to_owned())
    } else if has(&["上个月", "上月"]) {
        Some(format!("{:04}-{:02}", last.0, last.1))
    } else if has(&["本月", "这个月"]) {
        Some(format!("{year:04}-{month:02}"))
    } else if has(&["去年"]) {
        Some(format!("{:04}", year - 1))
    } else if has(&["今年"]) {
        Some(format!("{year:04}"))
    } else {
        named_period(query)
    }
}

/// Parses `2024年` and `2024年12月`.
fn named_period(query: &str) -> Option<String> {
    let (before, rest) = query.split_once('年')?;
    let year = before.get(before.len().checked_sub(4)?..)?;
    year.parse::<u32>().ok()?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    match digits.parse::<u32>() {
        Ok(month) if rest[digits.len()..].starts_with('月') => Some(format!("{year}-{month:02}")),
        _ => Some(year.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::conditions;

    fn check(query: &str, expected: Value) {
        let attributes = [
            json!({"name": "客户名称", "field_name": "customer_name"}),
            json!({"name": "客户电话", "field_name": "phone"}),
            json!({"name": "客户区域", "field_name": "region"}),
            json!({"name": "订单金额", "field_name": "amount"}),
            json!({"name": "下单日期", "field_name": "ordered_on"}),
            json!({"name": "订单编号", "field_name": "order_no"}),
        ];
        assert_eq!(json!(conditions(query, &attributes, "2025-01-15")), expected, "{query}");
    }

    fn one(field: &str, op: &str, value: &str) -> Value {
        json!([{"field": field, "op": op, "value": value}])
    }

    #[test]
    fn values_become_conditions() {
        check("手机号13800138000的订单", one("phone", "eq", "13800138000"));
        check("订单 SO-2024-0007", one("order_no", "eq", "SO-2024-0007"));
        check("客户张伟的订单", one("customer_name", "eq", "张伟"));
        let both = json!([{"field": "region", "op": "in", "value": ["华东", "华南"]}]);
        check("华东和华南的订单", both);
    }

    #[test]
    fn exclusions_become_negated_conditions() {
        check("除了手机号13800138000以外的客户", one("phone", "ne", "13800138000"));
        check("不是华东的订单", one("region", "ne", "华东"));
        let both = json!([{"field": "region", "op": "not_in", "value": ["华东", "华南"]}]);
        check("除华东、华南之外的订单", both);
    }

    #[test]
    fn periods_are_relative_to_today() {
        check("上个月的订单", one("ordered_on", "like", "2024-12"));
        check("去年的订单", one("ordered_on", "like", "2024"));
        check("2024年3月的订单", one("ordered_on", "like", "2024-03"));
        check("今天的订单", one("ordered_on", "like", "2025-01-15"));
    }

    #[test]
    fn amounts_are_compared() {
        check("金额超过1000的订单", json!([{"field": "amount", "op": "gt", "value": 1000}]));
        check("金额不超过 500 的订单", json!([{"field": "amount", "op": "lte", "value": 500}]));
    }
}
