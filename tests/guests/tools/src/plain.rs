//! Tools that mean well: answers, updates, flagged arguments, failures, questions.

use wattle_plugin::prelude::{
    Deserialize, Empty, Failure, JsonSchema, ToolContext, ToolOutput, Unchecked, Value, interrupt,
    json, tool,
};

/// What to say.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Words {
    /// The words.
    pub(crate) text: String,
}

/// Says the same.
#[tool(read_only, idempotent)]
pub(crate) fn echo(_context: &ToolContext, words: Words) -> Result<ToolOutput, Failure> {
    Ok(ToolOutput::text(words.text))
}

/// Says something as an error.
#[tool(read_only)]
pub(crate) fn wrong(_context: &ToolContext, words: Words) -> Result<ToolOutput, Failure> {
    Ok(ToolOutput::error(words.text))
}

/// What to add up.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Summands {
    /// The first.
    pub(crate) a: i64,
    /// The second.
    pub(crate) b: i64,
    /// The state channel that gets the sum; none if it is absent.
    #[serde(default)]
    pub(crate) channel: Option<String>,
}

/// Adds two numbers.
#[tool(idempotent)]
pub(crate) fn add(_context: &ToolContext, args: Summands) -> Result<ToolOutput, Failure> {
    let sum = args.a + args.b;
    let output = ToolOutput::json(&json!({ "sum": sum }))?;
    Ok(match args.channel {
        Some(channel) => output.with_update(channel, sum),
        None => output,
    })
}

/// A number.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
pub(crate) struct Number {
    /// Any whole number.
    number: i64,
}

/// Wants a number and takes anything.
#[tool(read_only)]
pub(crate) fn flagged(
    _context: &ToolContext,
    args: Unchecked<Number>,
) -> Result<ToolOutput, Failure> {
    ToolOutput::json(&json!({ "raw": args.raw, "violations": args.violations }))
}

/// How to fail.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Fault {
    /// The code; `misdeed` if it is absent.
    #[serde(default)]
    pub(crate) code: Option<String>,
    /// Whether a later try may help.
    #[serde(default)]
    pub(crate) retryable: bool,
}

/// Fails.
#[tool(read_only)]
pub(crate) fn fail(_context: &ToolContext, fault: Fault) -> Result<ToolOutput, Failure> {
    let code = fault.code.unwrap_or_else(|| "misdeed".to_owned());
    let failure = Failure::new(code, "the tool failed as asked");
    Err(if fault.retryable { failure.retryable() } else { failure })
}

/// Says where and for what it was called.
#[tool(read_only)]
pub(crate) fn whoami(context: &ToolContext, _args: Empty) -> Result<ToolOutput, Failure> {
    ToolOutput::json(&json!({
        "tool": context.tool,
        "call_id": context.call_id,
        "thread_id": context.thread_id,
        "task_id": context.task_id,
        "tenant": context.tenant,
        "state": context.state::<Value>()?,
    }))
}

/// What to ask.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Wish {
    /// The question.
    pub(crate) question: String,
}

/// Asks a person and says what the answer was.
#[tool]
pub(crate) fn ask_first(context: &ToolContext, wish: Wish) -> Result<ToolOutput, Failure> {
    let question = json!({ "question": wish.question, "call_id": context.call_id });
    ToolOutput::json(&interrupt::ask(question)?)
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{ToolContext, json};
    use wattle_plugin::testing::{self, FakeHost};

    use super::{add, ask_first, fail, flagged};

    #[test]
    fn a_sum_is_written_only_where_it_is_wanted() {
        let context = ToolContext::default();
        let output = testing::call_tool::<add>(&context, &json!({"a": 1, "b": 2})).unwrap();
        assert_eq!((output.structured, output.updates), (Some(json!({"sum": 3})), vec![]));
        let args = json!({"a": 1, "b": 2, "channel": "sum"});
        let output = testing::call_tool::<add>(&context, &args).unwrap();
        assert_eq!(output.updates[0].value, json!(3));
    }

    #[test]
    fn wrong_arguments_are_handed_back() {
        let violations = vec!["`number` is no number".to_owned()];
        let context = ToolContext { violations, ..ToolContext::default() };
        let output = testing::call_tool::<flagged>(&context, &json!({"number": "x"})).unwrap();
        assert_eq!(
            output.structured,
            Some(json!({"raw": {"number": "x"}, "violations": ["`number` is no number"]}))
        );
    }

    #[test]
    fn a_failure_is_as_asked() {
        let args = json!({"code": "busy", "retryable": true});
        let failure = testing::call_tool::<fail>(&ToolContext::default(), &args).unwrap_err();
        assert_eq!((failure.code.as_str(), failure.retryable), ("busy", true));
    }

    #[test]
    fn the_answer_of_a_person_is_the_answer() {
        let host = FakeHost::new().answer(json!({"approved": true}));
        let args = json!({"question": "may I"});
        let output =
            host.run(|| testing::call_tool::<ask_first>(&ToolContext::default(), &args)).unwrap();
        assert_eq!(output.structured, Some(json!({"approved": true})));
    }
}
