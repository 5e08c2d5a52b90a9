//! Helpers that tests of several files share.

use wattle_plugin::prelude::{ToolOutput, Value, json};
use wattle_plugin::testing::FakeHost;

use crate::ontology::Attribute;

/// 2025-01-15 10:30:45 in Shanghai.
pub(crate) const NOW_MS: i64 = 1_736_908_245_000;

/// A fake host whose clock is at [`NOW_MS`].
pub(crate) fn host() -> FakeHost {
    let host = FakeHost::new().now_ms(NOW_MS).zone("Asia/Shanghai", 28_800);
    host.setting("time_zone", "Asia/Shanghai")
}

/// Adds a tool that always returns these items.
pub(crate) fn lists(host: FakeHost, tool: &str, items: Value) -> FakeHost {
    host.tool(tool, move |_| ToolOutput::json(&json!({ "items": items })))
}

/// Returns the attributes of a customer.
pub(crate) fn attributes() -> Vec<Attribute> {
    let attribute = |code: &str, name: &str, field: &str| Attribute {
        code: code.to_owned(),
        name: name.to_owned(),
        field_name: field.to_owned(),
        ..Attribute::default()
    };
    vec![
        attribute("customer_id", "客户编号", "customer_id"),
        attribute("customer_phone", "联系电话", "phone"),
        attribute("customer_region", "客户区域", "region"),
        attribute("customer_level", "客户等级", "level"),
        attribute("customer_amount", "累计金额", "amount"),
    ]
}
