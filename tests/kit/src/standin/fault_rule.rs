//! Rules of faults: the requests to which a fault applies. Unknown fields and values without effect
//! are errors in the JSON form, because such a rule has not the effect that its author expects.

use std::ops::RangeInclusive;

use axum::http::HeaderValue;
use serde::{Deserialize, Serialize};

use super::{
    faults::{Fault, Pattern},
    imprecise::Imprecise,
    scripted,
};

/// The statuses that a response can have. Those below are for responses that follow.
const STATUSES: RangeInclusive<u16> = 200..=599;

/// The largest sum of rates. Rates such as a ninth are rounded, so their sum may exceed 1.
const MAX_RATES: f64 = 1.0 + 1e-9;

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
    #[error("`path` is `{0}`; it begins with `/`, has no query, and may end with `*`")]
    Path(String),
    #[error("`times` is 0; it is at least 1, and a rule without it applies to every request")]
    NoTimes,
    #[error("a script has no `times`; it applies to one request for each entry of `contents`")]
    TimesOfScript,
    #[error("`imprecise` has no `times`; `rates` has the fraction of the responses")]
    TimesOfImprecise,
    #[error("`status` is {0}; it is from 200 to 599")]
    Status(u16),
    #[error("`retry_after` cannot be a header; it is a number of seconds or an HTTP date")]
    RetryAfter,
    #[error("`contents` is empty; it has an entry for each request")]
    NoEntry,
    #[error("entry {number} of `contents`: {reason}")]
    Entry { number: usize, reason: serde_json::Error },
    #[error("`rates` are from 0 to 1, and their sum is at most 1")]
    Rates,
}

impl TryFrom<Document> for FaultRule {
    type Error = InvalidRule;

    fn try_from(document: Document) -> Result<Self, InvalidRule> {
        let Document { path, model, body_contains, fault, times, skip } = document;
        if let Some(path) = path.as_ref().filter(|path| !is_path(path)) {
            return Err(InvalidRule::Path(path.clone()));
        }
        check_times(times, &fault)?;
        check(&fault)?;
        Ok(Self { on: Pattern { path, model, body_contains }, fault, times, skip })
    }
}

/// Returns true if requests can have this path, or paths with this prefix.
fn is_path(path: &str) -> bool {
    let prefix = path.strip_suffix('*').unwrap_or(path);
    (prefix.starts_with('/') || path == "*") && !prefix.contains(['*', '?', '#'])
}

fn check_times(times: Option<u32>, fault: &Fault) -> Result<(), InvalidRule> {
    match (times, fault) {
        (Some(_), Fault::Script { .. }) => Err(InvalidRule::TimesOfScript),
        (Some(_), Fault::Imprecise(_)) => Err(InvalidRule::TimesOfImprecise),
        (Some(0), _) => Err(InvalidRule::NoTimes),
        _ => Ok(()),
    }
}

fn check(fault: &Fault) -> Result<(), InvalidRule> {
    match fault {
        Fault::Status { status, .. } if !STATUSES.contains(status) => {
            Err(InvalidRule::Status(*status))
        }
        Fault::Status { retry_after: Some(value), .. } if HeaderValue::from_str(value).is_err() => {
            Err(InvalidRule::RetryAfter)
        }
        Fault::Script { contents } if contents.is_empty() => Err(InvalidRule::NoEntry),
        Fault::Script { contents } => (1..).zip(contents).try_for_each(|(number, entry)| {
            scripted::check(entry).map_err(|reason| InvalidRule::Entry { number, reason })
        }),
        Fault::Imprecise(mode) if !has_rates(mode) => Err(InvalidRule::Rates),
        _ => Ok(()),
    }
}

fn has_rates(mode: &Imprecise) -> bool {
    let mut rates = mode.rates.values();
    rates.all(|rate| (0.0..=1.0).contains(rate)) && mode.rates.values().sum::<f64>() <= MAX_RATES
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, from_value, json};

    use super::*;
    use crate::standin::imprecise::Imprecision;

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

    #[test]
    fn values_without_effect_are_refused() {
        let of = |fault: Value| json!({ "fault": fault });
        let timed = |times: u32, fault: Value| json!({ "times": times, "fault": fault });
        let script = json!({"kind": "script", "contents": ["a"]});
        for (rule, expected) in [
            (timed(0, json!({"kind": "cut"})), "it is at least 1"),
            (timed(2, script), "it applies to one request for each entry"),
            (timed(2, json!({"kind": "imprecise", "seed": 1, "rates": {}})), "has no `times`"),
            (of(json!({"kind": "status", "status": 199})), "it is from 200 to 599"),
            (of(json!({"kind": "status", "status": 600})), "it is from 200 to 599"),
            (
                of(json!({"kind": "status", "status": 429, "retry_after": "1\n"})),
                "it is a number of seconds or an HTTP date",
            ),
            (of(json!({"kind": "script", "contents": []})), "an entry for each request"),
            (of(json!({"kind": "imprecise", "seed": 1, "rates": {"prose": 1.1}})), "from 0 to 1"),
            (
                of(json!({"kind": "imprecise", "seed": 1, "rates": {"prose": 0.6, "empty": 0.5}})),
                "their sum is at most 1",
            ),
        ] {
            let refusal = refusal(rule);
            assert!(refusal.contains(expected), "{refusal}");
        }
    }

    #[test]
    fn rates_whose_sum_is_rounded_above_one_are_accepted() {
        let rate = 1.0 / Imprecision::ALL.len() as f64;
        let rates: BTreeMap<_, _> = Imprecision::ALL.map(|kind| (kind, rate)).into();
        assert!(rates.values().sum::<f64>() > 1.0);
        let fault = json!({"kind": "imprecise", "seed": 1, "rates": rates});
        from_value::<FaultRule>(json!({ "fault": fault })).unwrap();
    }

    #[test]
    fn paths_that_no_request_has_are_refused() {
        let rule = |path: &str| json!({"path": path, "fault": {"kind": "cut"}});
        for path in
            ["v1/messages", "http://127.0.0.1/v1", "/v1/*/messages", "/search?q=a", "a*", ""]
        {
            assert!(refusal(rule(path)).starts_with(&format!("`path` is `{path}`; ")), "{path}");
        }
        for path in ["/v1/messages", "/v1/*", "/*", "*"] {
            from_value::<FaultRule>(rule(path)).unwrap();
        }
    }
}
