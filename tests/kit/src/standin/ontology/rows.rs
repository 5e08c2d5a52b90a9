//! The rows of each class, generated from lists and therefore equal in every process.

use serde_json::{Value, json};

const SURNAMES: &[&str] = &["张", "王", "李", "赵", "刘", "陈", "杨", "黄"];
const NAMES: &[&str] = &["伟", "芳", "娜", "强", "敏"];
const REGIONS: &[&str] = &["华东", "华南", "华北", "西南"];
const LEVELS: &[&str] = &["金牌", "银牌", "普通"];
const PRODUCTS: &[&str] = &["光纤套餐", "云主机", "智能路由器", "企业专线", "云存储", "视频会议"];
const ORDER_STATUSES: &[&str] = &["待付款", "已发货", "已完成", "已取消", "已完成"];
const CONTRACT_STATUSES: &[&str] = &["生效中", "已到期", "生效中", "已终止"];
const DEPARTMENTS: &[&str] = &["销售部", "客服部", "运维部", "财务部"];
const MODELS: &[&str] = &["OLT-5800", "ONU-210", "SW-48P"];
const SITES: &[&str] = &["浦东机房", "天河机房", "朝阳机房", "武侯机房", "滨江机房"];
const DEVICE_STATUSES: &[&str] = &["在线", "在线", "离线", "在线", "故障"];
const TICKET_KINDS: &[&str] = &["投诉", "报修", "咨询"];
const SUPPLIERS: &[(&str, &str)] =
    &[("华星光电", "深圳"), ("远景网络", "杭州"), ("中科通信", "北京")];

const CUSTOMERS: usize = 40;
const ORDERS: usize = 120;
const CONTRACTS: usize = 30;
const EMPLOYEES: usize = 24;
const DEVICES: usize = 50;
const TICKETS: usize = 45;

/// Returns all rows of a class.
pub(super) fn of(class: &str) -> Vec<Value> {
    match class {
        "customer" => (0..CUSTOMERS).map(customer).collect(),
        "order" => (0..ORDERS).map(order).collect(),
        "contract" => (0..CONTRACTS).map(contract).collect(),
        "employee" => (0..EMPLOYEES).map(employee).collect(),
        "device" => (0..DEVICES).map(device).collect(),
        "ticket" => (0..TICKETS).map(ticket).collect(),
        "supplier" => {
            let row = |(name, city): &(&str, &str)| json!({ "name": name, "city": city });
            SUPPLIERS.iter().map(row).collect()
        }
        _ => Vec::new(),
    }
}

fn customer(index: usize) -> Value {
    json!({
        "customer_no": format!("C{:04}", index + 1),
        "name": customer_name(index),
        "phone": customer_phone(index),
        "region": pick(REGIONS, index * 3 + index / 7),
        "level": pick(LEVELS, index * 2 + index / 5),
        "registered_on": date(index * 9),
    })
}

fn order(index: usize) -> Value {
    let owner = index * 7 % CUSTOMERS;
    json!({
        "order_no": format!("SO-2024-{:04}", index + 1),
        "customer_name": customer_name(owner),
        "customer_phone": customer_phone(owner),
        "region": pick(REGIONS, owner * 3 + owner / 7),
        "product": pick(PRODUCTS, index * 5 + index / 6),
        "amount": 99 + (index * 37 % 50) * 20,
        "status": pick(ORDER_STATUSES, index + index / 5),
        "ordered_on": date(index * 3),
    })
}

fn contract(index: usize) -> Value {
    json!({
        "contract_no": format!("HT-{:04}", index + 1),
        "customer_name": customer_name(index * 11 % CUSTOMERS),
        "amount": 10_000 + (index * 13 % 30) * 2_500,
        "status": pick(CONTRACT_STATUSES, index),
        "signed_on": date(index * 12),
    })
}

fn employee(index: usize) -> Value {
    json!({
        "employee_no": format!("E{:04}", index + 1),
        "name": employee_name(index),
        "phone": format!("139001390{index:02}"),
        "department": pick(DEPARTMENTS, index),
    })
}

fn device(index: usize) -> Value {
    json!({
        "device_no": format!("DEV-{:04}", index + 1),
        "model": pick(MODELS, index),
        "site": pick(SITES, index / 2),
        "status": pick(DEVICE_STATUSES, index),
    })
}

fn ticket(index: usize) -> Value {
    let owner = index * 3 % CUSTOMERS;
    json!({
        "ticket_no": format!("TK-{:04}", index + 1),
        "customer_name": customer_name(owner),
        "customer_phone": customer_phone(owner),
        "assignee": employee_name(index * 5 % EMPLOYEES),
        "kind": pick(TICKET_KINDS, index),
        "status": if index.is_multiple_of(4) { "处理中" } else { "已关闭" },
    })
}

/// Returns a name that no other customer has.
fn customer_name(index: usize) -> String {
    format!("{}{}", pick(SURNAMES, index % 8), pick(NAMES, index / 8))
}

fn employee_name(index: usize) -> String {
    format!("{}晓{}", pick(SURNAMES, index % 8), pick(NAMES, index / 8))
}

fn customer_phone(index: usize) -> String {
    format!("138001380{index:02}")
}

fn date(days: usize) -> String {
    let (month, day) = (days / 28 % 12 + 1, days % 28 + 1);
    format!("2024-{month:02}-{day:02}")
}

fn pick(list: &[&'static str], index: usize) -> &'static str {
    list[index % list.len()]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{CUSTOMERS, of};
    use crate::standin::ontology::classes::CLASSES;

    #[test]
    fn rows_have_the_fields_of_their_class() {
        let mut rows = 0;
        for class in CLASSES {
            let fields: BTreeSet<&str> = class.fields.iter().map(|(_, field)| *field).collect();
            for row in of(class.code) {
                rows += 1;
                let names: BTreeSet<&str> =
                    row.as_object().unwrap().keys().map(String::as_str).collect();
                assert_eq!(names, fields, "{}", class.code);
            }
        }
        assert!(rows > 300, "{rows}");
    }

    #[test]
    fn phone_numbers_identify_customers() {
        let phones: BTreeSet<String> =
            of("customer").iter().map(|row| row["phone"].to_string()).collect();
        assert_eq!(phones.len(), CUSTOMERS);
        let orders = of("order");
        assert!(orders.iter().all(|order| phones.contains(&order["customer_phone"].to_string())));
    }
}
