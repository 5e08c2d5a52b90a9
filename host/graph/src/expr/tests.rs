//! Conditions as a table.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{CONDITION_LIMIT_BYTES, Condition};
use crate::checkpoint::Values;
use crate::id::ChannelName;

fn state() -> Values {
    let state = json!({
        "kind": "image", "count": 3, "score": 0.5, "big": u64::MAX, "done": false, "nothing": null,
        "items": [{ "n": 1 }, { "n": 2 }], "plan": { "steps": ["a"], "status": "open" }
    });
    let Value::Object(fields) = state else { unreachable!("an object literal") };
    let entries = fields.into_iter();
    entries.map(|(name, value)| (ChannelName::new(name).unwrap(), Arc::new(value))).collect()
}

#[test]
fn conditions_are_decided() {
    for (text, wanted) in [
        ("state.kind == 'image'", true),
        ("state['kind'] == \"text\"", false),
        ("state.count + 1 > 3 && state.score < 1", true),
        ("state.missing == null", true),
        ("state.missing == null || state.missing.x == 1", true),
        ("state.nothing == null", true),
        ("has(state.plan.status) && !has(state.plan.other)", true),
        ("size(state.items) == 2 && state.items[1].n == 2", true),
        ("state.items.exists(item, item.n > 1)", true),
        ("state.items.map(item, item.n) == [1, 2]", true),
        ("state.items.all(item, item.n < state.count)", true),
        ("'a' in state.plan.steps", true),
        ("['a'] == state.plan.steps", true),
        ("state.kind in ['text', 'video']", false),
        ("state.big > 5", true),
        ("state.kind.startsWith('im')", true),
        ("size(state) == 8", true),
        ("state[state.kind == 'image' ? 'done' : 'kind'] == false", true),
        ("true", true),
    ] {
        let condition = Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(condition.eval(&state()), Ok(wanted), "{text}");
    }
}

#[test]
fn failures_name_the_condition() {
    for (text, part) in [
        ("state.count", "neither true nor false"),
        ("state.kind > 1", "`state.kind > 1` failed"),
        ("state.missing.x == 1", "failed"),
    ] {
        let error = Condition::parse(text).unwrap().eval(&state()).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn bad_texts_are_refused() {
    for (text, part) in [
        ("", ""),
        ("state.x ==", ""),
        ("inputType == 'a'", "write `state.inputType`"),
        ("state.items.exists(i, j > 1)", "`j` is not known"),
        ("[1].all(a, [1].all(b, [1].all(c, true)))", "loops are nested"),
    ] {
        let error = Condition::parse(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
    assert!(Condition::parse(&" ".repeat(CONDITION_LIMIT_BYTES + 1)).is_err());
    for repeated in ["(", "!", "[", "-", "state.a[", "{1:", "f(", "true ? true : "] {
        let text = repeated.repeat(CONDITION_LIMIT_BYTES / repeated.len());
        assert!(Condition::parse(&text).is_err(), "{repeated}");
    }
    for chained in ["+1", "[0]", ".a", "&& true", "== 1", ".f()"] {
        let text = format!("state{}", chained.repeat(140));
        // Whether it is refused or not, it must not exhaust the stack.
        if let Ok(condition) = Condition::parse(&text) {
            let _ = condition.eval(&state());
        }
    }
}

#[test]
fn channels_are_found() {
    let condition =
        Condition::parse("state.a.b == 1 && [state['c']].exists(x, x == state.d[x])").unwrap();
    assert_eq!(condition.channels().into_iter().collect::<Vec<_>>(), ["a", "c", "d"]);
}
