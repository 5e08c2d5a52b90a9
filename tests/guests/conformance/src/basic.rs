//! Nodes that need little of the host: text, values, a configuration, an interrupt, a failure.

use wattle_plugin::log::Level;
use wattle_plugin::prelude::{
    Context, Deserialize, Failure, JsonSchema, Serialize, Value, emit, interrupt, json, log, node,
};

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Text {
    /// The text.
    pub(crate) text: String,
}

impl Text {
    pub(crate) fn count_words(&self) -> i64 {
        self.text.split_whitespace().map(|_| 1).sum()
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Counted {
    /// Number of words.
    pub(crate) words: i64,
}

/// Counts the words of a text.
#[node]
pub(crate) fn words(_context: &Context, input: Text) -> Result<Counted, Failure> {
    let words = input.count_words();
    log::write(Level::Info, "counted", &[("words", json!(words))]);
    emit::custom("counted", json!({ "words": words }))?;
    emit::progress("counted", Some(0.5))?;
    Ok(Counted { words })
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Anything {
    /// Any value.
    value: Value,
}

/// Writes the value that it reads.
#[node]
pub(crate) fn echo(_context: &Context, input: Anything) -> Result<Anything, Failure> {
    Ok(input)
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// Words to leave out.
    ignore: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct List {
    /// The words.
    words: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Kept {
    /// The words that matter.
    kept: Vec<String>,
}

/// Keeps the words that matter.
#[node(config = Config)]
pub(crate) fn keep(context: &Context, input: List) -> Result<Kept, Failure> {
    let config: Config = context.config()?;
    let kept = input.words.into_iter().filter(|word| !config.ignore.contains(word));
    Ok(Kept { kept: kept.collect() })
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Decided {
    /// `call` or `ignore`.
    decision: String,
}

/// Asks whether a text may be published.
#[node]
pub(crate) fn approve(_context: &Context, input: Text) -> Result<Decided, Failure> {
    let is_approved: bool = interrupt::ask_with_schema(json!({ "ticket": input.text }))?;
    let decision = if is_approved { "call" } else { "ignore" };
    Ok(Decided { decision: decision.to_owned() })
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Fault {
    /// The code.
    code: String,
    /// The message.
    message: String,
    /// Whether another attempt may help.
    retryable: bool,
    /// The details.
    details: Value,
}

/// Fails as asked.
#[node]
pub(crate) fn fail(_context: &Context, input: Fault) -> Result<(), Failure> {
    let failure = Failure::new(input.code, input.message).with_details(input.details);
    Err(if input.retryable { failure.retryable() } else { failure })
}
