//! Tools for a Feishu table of expenses: `saveExpenseToLark` writes a row, `listExpensesFromLark`
//! reads the rows of a period.
//!
//! # Layout
//!
//! * `expense`: what a model may say about an expense, and what is wrong with it.
//! * `bitable`: records of a table of Feishu, with what can go wrong there.
//! * `client_token`: the name under which Feishu knows a record that was sent twice.
//! * `save`, `list`: the tools, which answer every failure as a document.

mod bitable;
mod client_token;
mod expense;
mod list;
mod save;

wattle_plugin::manifest!(
    r#"
    http = [{ host = "open.feishu.cn", methods = ["POST"], secrets = ["FEISHU_TENANT_TOKEN"] }]
    "#
);

wattle_plugin::export! { tools: [save::save_expense_to_lark, list::list_expenses_from_lark] }
