//! The tool `saveExpenseToLark`: one row of a Feishu table per expense.
//!
//! # Layout
//!
//! * `expense`: what a model may say about an expense, and what is wrong with it.
//! * `bitable`: one record in a table of Feishu, with what can go wrong there.
//! * `client_token`: the name under which Feishu knows a record that was sent twice.
//! * `save`: the tool, which answers every failure as a document.

mod bitable;
mod client_token;
mod expense;
mod save;

wattle_plugin::manifest!(
    r#"
    http = [{ host = "open.feishu.cn", methods = ["POST"], secrets = ["FEISHU_TENANT_TOKEN"] }]
    "#
);

wattle_plugin::export! { tools: [save::save_expense_to_lark] }
