//! Tools: one that reads, and one that asks a person.

use wattle_plugin::prelude::{
    Deserialize, Failure, JsonSchema, ToolContext, ToolOutput, interrupt, json, tool,
};

use crate::basic::Text;

/// Counts the words of a text.
#[tool(read_only)]
pub(crate) fn count_words(_context: &ToolContext, args: Text) -> Result<ToolOutput, Failure> {
    ToolOutput::json(&json!({ "words": args.count_words() }))
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Payment {
    /// In cents.
    #[schemars(range(min = 1))]
    amount: i64,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Decision {
    /// Whether the person agrees.
    approved: bool,
}

/// Pays an amount, if a person approves.
#[tool]
pub(crate) fn pay(_context: &ToolContext, payment: Payment) -> Result<ToolOutput, Failure> {
    let decision: Decision = interrupt::ask_with_schema(json!({ "amount": payment.amount }))?;
    if !decision.approved {
        return Ok(ToolOutput::error("the payment was not approved"));
    }
    Ok(ToolOutput::text("paid").with_update("paid", payment.amount))
}
