//! Tools for a Feishu table of expenses: `saveExpenseToLark` writes a row, and
//! `listExpensesFromLark` reads the rows of a period.
//!
//! # Layout
//!
//! * `expense`: expenses in the form of models, and their validation.
//! * `bitable`: records of a Feishu table, and errors of Feishu.
//! * `client_token`: the token by which Feishu recognizes a repeated request.
//! * `save`, `list`: the tools, which return a document for every failure.

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
