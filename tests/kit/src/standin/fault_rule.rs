//! Rules of faults: the requests to which a fault applies. Unknown fields of the JSON form are
//! errors, because a rule with a misspelled field has not the effect that its author expects.

use serde::{Deserialize, Serialize};

use super::faults::{Fault, Pattern};
use super::scripted;

/// A fault, the requests to which it applies, and the number of times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Document")]
pub struct FaultRule {
    /// The requests to which the fault applies.
    #[serde(flatten)]
    pub on: Pattern,
    /// The fault.
    pub fault: Fault,
    /// Number of requests to which the fault applies; unlimited if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// Number of matching requests that the rule skips first.
    pub skip: u32,
}

impl FaultRule {
    /// Creates a rule that applies `fault` to every matching request until the rules are cleared.
    pub fn new(on: Pattern, fault: Fault) -> Self {
        Self { on, fault, times: None, skip: 0 }
    }

    /// Limits the number of requests to which the rule applies.
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Sets the number of matching requests that the rule skips first.
    pub fn skip(mut self, skip: u32) -> Self {
        self.skip = skip;
        self
    }
}

/// The JSON form of a rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with a `fault`")]
struct Document {
    path: Option<String>,
    model: Option<String>,
    body_contains: Option<String>,
    fault: Fault,
    times: Option<u32>,
    #[serde(default)]
    skip: u32,
}

/// The reason why a rule is refused.
#[derive(Debug, thiserror::Error)]
enum InvalidRule {
    #[error("entry {number} of `contents`: {reason}")]
    Entry { number: usize, reason: serde_json::Error },
}

impl TryFrom<Document> for FaultRule {
    type Error = InvalidRule;

    fn try_from(document: Document) -> Result<Self, InvalidRule> {
        let Document { path, model, body_contains, fault, times, skip } = document;
        check(&fault)?;
        Ok(Self { on: Pattern { path, model, body_contains }, fault, times, skip })
    }
}

fn check(fault: &Fault) -> Result<(), InvalidRule> {
    let Fault::Script { contents } = fault else { return Ok(()) };
    (1..).zip(contents).try_for_each(|(number, entry)| {
        scripted::check(entry).map_err(|reason| InvalidRule::Entry { number, reason })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    /// Returns the reason why a rule is refused.
    fn refusal(rule: Value) -> String {
        from_value::<FaultRule>(rule).unwrap_err().to_string()
    }

    #[test]
    fn rules_are_parsed_from_json() {
        let document = json!({"path": "/v1/messages", "times": 2,
            "fault": {"kind": "status", "status": 429, "retry_after": "1"}});
        let rule: FaultRule = from_value(document).unwrap();
        let fault = Fault::Status { status: 429, retry_after: Some("1".to_owned()), body: None };
        assert_eq!(rule, FaultRule::new(Pattern::path("/v1/messages"), fault).times(2));
        let rule: FaultRule = from_value(json!({"fault": {"kind": "hang_after"}})).unwrap();
        assert_eq!(rule, FaultRule::new(Pattern::any(), Fault::HangAfter));
    }

    #[test]
    fn unknown_fields_are_refused_with_the_known_ones() {
        let of_rule = "expected one of `path`, `model`, `body_contains`, `fault`, `times`, `skip`";
        let misspelled = json!({"paht": "/v1/messages", "fault": {"kind": "cut"}});
        assert_eq!(refusal(misspelled), format!("unknown field `paht`, {of_rule}"));
        assert_eq!(refusal(json!({"kind": "cut"})), format!("unknown field `kind`, {of_rule}"));
        for (fault, expected) in [
            (
                json!({"kind": "status", "status": 429, "retry": "1"}),
                "unknown field `retry`, expected one of `status`, `retry_after`, `body`",
            ),
            (json!({"kind": "slow", "ms": 5, "s": 1}), "unknown field `s`, expected `ms`"),
            (json!({"kind": "cut", "after": 3}), "unknown field `after`, there are no fields"),
            (json!({"kind": "fenced", "text": "a"}), "unknown field `text`, there are no fields"),
            (
                json!({"kind": "script", "contents": ["a"], "times": 2}),
                "unknown field `times`, expected `contents`",
            ),
            (json!("cut"), "invalid type: string \"cut\", expected an object with a `kind`"),
        ] {
            assert_eq!(refusal(json!({"fault": fault})), expected);
        }
    }

    #[test]
    fn unknown_kinds_are_refused_with_the_known_ones() {
        let refusal = refusal(json!({"fault": {"kind": "magic"}}));
        assert!(refusal.starts_with("unknown variant `magic`, expected one of `status`, `cut`"));
        assert!(refusal.ends_with("`withheld`, `stream`, `imprecise`"), "{refusal}");
    }

    #[test]
    fn an_entry_with_wrong_tool_calls_is_refused_by_its_number() {
        for (entry, expected) in [
            (json!({"tool_calls": {"name": "add"}}), "invalid type: map, expected a sequence"),
            (json!({"tool_calls": [{"arguments": {}}]}), "missing field `name`"),
            (
                json!({"tool_calls": [{"name": "add", "argumets": {}}]}),
                "unknown field `argumets`, expected one of `id`, `name`, `arguments`",
            ),
            (
                json!({"tool_calls": [], "text": "a"}),
                "unknown field `text`, expected one of `tool_calls`, `content`, `reasoning`",
            ),
        ] {
            let script = json!({"fault": {"kind": "script", "contents": ["a", entry]}});
            assert_eq!(refusal(script), format!("entry 2 of `contents`: {expected}"));
        }
    }
}
