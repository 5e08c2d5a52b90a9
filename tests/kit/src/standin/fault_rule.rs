//! Rules of faults: the requests to which a fault applies.

use serde::{Deserialize, Serialize};

use super::faults::{Fault, Pattern};

/// A fault, the requests to which it applies, and the number of times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Document")]
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

/// The JSON form of a rule. Unknown keys are errors, because a test with a misspelled key would
/// test nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    path: Option<String>,
    model: Option<String>,
    body_contains: Option<String>,
    fault: Fault,
    times: Option<u32>,
    #[serde(default)]
    skip: u32,
}

impl From<Document> for FaultRule {
    fn from(document: Document) -> Self {
        let Document { path, model, body_contains, fault, times, skip } = document;
        Self { on: Pattern { path, model, body_contains }, fault, times, skip }
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_parsed_from_json_and_unknown_keys_are_rejected() {
        let document = json!({"path": "/v1/messages", "times": 2,
            "fault": {"kind": "status", "status": 429, "retry_after": "1"}});
        let rule: FaultRule = serde_json::from_value(document).unwrap();
        let fault = Fault::Status { status: 429, retry_after: Some("1".to_owned()), body: None };
        assert_eq!(rule, FaultRule::new(Pattern::path("/v1/messages"), fault).times(2));
        let misspelled = json!({"paht": "/v1/messages", "fault": {"kind": "cut"}});
        serde_json::from_value::<FaultRule>(misspelled).unwrap_err();
    }
}
