//! The rules in effect, and the fault of each request.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::{call::Call, fault_rule::FaultRule, faults::Fault};

/// The rules in effect, oldest first.
#[derive(Debug, Default)]
pub(super) struct Orders {
    rules: Mutex<Vec<FaultRule>>,
}

impl Orders {
    pub(super) fn add(&self, rule: FaultRule) {
        self.lock().push(rule);
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    pub(super) fn list(&self) -> Vec<FaultRule> {
        self.lock().clone()
    }

    /// Returns the fault for a request and counts its use. Only the oldest matching rule applies.
    pub(super) fn take(&self, call: &Call) -> Option<Fault> {
        let mut rules = self.lock();
        let index = rules.iter().position(|rule| rule.on.fits(call))?;
        let rule = &mut rules[index];
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        if let Fault::Imprecise(mode) = &mut rule.fault {
            return mode.draw(call).map(Fault::Imprecise);
        }
        if let Fault::Script { contents } = &mut rule.fault {
            let next = contents.pop_front();
            let fault = next.map(|next| Fault::Script { contents: VecDeque::from([next]) });
            if contents.is_empty() {
                rules.remove(index);
            }
            return fault;
        }
        let fault = rule.fault.clone();
        if let Some(times) = &mut rule.times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                rules.remove(index);
            }
        }
        Some(fault)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<FaultRule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::standin::faults::Pattern;

    fn call(path: &str, model: &str) -> Call {
        Call::sample("POST", path, &json!({"model": model}))
    }

    #[test]
    fn rules_apply_to_matching_requests_the_given_number_of_times() {
        let orders = Orders::default();
        orders.add(FaultRule::new(Pattern::model("gpt-4o-mini"), Fault::Garbage).times(2).skip(1));
        let hits: Vec<bool> = ["gpt-4o-mini", "other", "gpt-4o-mini", "gpt-4o-mini", "gpt-4o-mini"]
            .iter()
            .map(|model| orders.take(&call("/v1/chat/completions", model)).is_some())
            .collect();
        assert_eq!(hits, [false, false, true, true, false]);
        assert!(orders.list().is_empty());
    }

    #[test]
    fn completions_of_a_script_are_sent_once() {
        let orders = Orders::default();
        let script = json!({"fault": {"kind": "script", "contents": ["a", {"b": 1}]}});
        orders.add(serde_json::from_value(script).unwrap());
        let next = || match orders.take(&call("/", "m")) {
            Some(Fault::Script { contents }) => contents.front().cloned(),
            _ => None,
        };
        assert_eq!([next(), next(), next()], [Some(json!("a")), Some(json!({"b": 1})), None]);
        assert!(orders.list().is_empty());
    }
}
