//! Tables of conditions.

use serde_json::{Value, json};

use super::{CONDITION_LIMIT_BYTES, Condition, ConditionBudget, EvalError};
use crate::checkpoint::Values;
use crate::id::ChannelName;

fn state() -> Values {
    let state = json!({
        "kind": "image", "count": 3, "score": 0.5, "big": u64::MAX, "done": false, "nothing": null,
        "items": [{ "n": 1 }, { "n": 2 }], "plan": { "steps": ["a"], "status": "open" }
    });
    let Value::Object(fields) = state else { unreachable!("an object literal") };
    let entries = fields.into_iter();
    entries.map(|(name, value)| (ChannelName::new(name).unwrap(), value.into())).collect()
}

#[test]
fn conditions_evaluate() {
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
        ("size(state.plan) == 2 && size(state.plan.steps) == 1 && state.items.size() == 2", true),
        ("[{'n': 1}, {'n': 2}] == state.items && state.items == [{'n': 1}, {'n': 2}]", true),
        ("{'status': 'open', 'steps': ['a']} == state.plan && state.plan != {}", true),
        ("state.plan.steps + ['b'] == ['a', 'b'] && ['b'] + state.plan.steps == ['b', 'a']", true),
        ("state.plan in [state.items, state.plan] && state.items[0] in state.items", true),
        ("[state.items][0][1].n == 2 && (state.done ? [] : state.items)[0].n == 1", true),
        ("state.items[size(state.items) - 1].n == 2 && 'steps' in state.plan", true),
        ("state.items == state.plan || state.items == null || null == state.plan", false),
        ("state.items.map(item, [item])[1][0].n == 2", true),
        ("type(state.items) == list && type(state.plan) == map", true),
        ("state[state.kind == 'image' ? 'done' : 'kind'] == false", true),
        ("true", true),
    ] {
        let condition = Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(condition.eval(&state(), &ConditionBudget::default()), Ok(wanted), "{text}");
    }
}

#[test]
fn loops_over_objects_have_a_fixed_order() {
    // The interpreter's own order differs between equal objects.
    for _ in 0..20 {
        for text in [
            "{'e': 1, 'd': 1, 'c': 1, 'b': 1, 'a': 1}.map(k, k) == ['a', 'b', 'c', 'd', 'e']",
            "{2: 1, 'a': 1, 10: 1, true: 1, 3u: 1}.map(k, k) == [true, 2, 10, 3u, 'a']",
            "state.map(k, k)[0] == 'big' && state.items[0].map(k, k) == ['n']",
            "state.plan.filter(k, k > 'a') == ['status', 'steps']",
        ] {
            let condition = Condition::parse(text).unwrap();
            assert_eq!(condition.eval(&state(), &ConditionBudget::default()), Ok(true), "{text}");
        }
    }
}

#[test]
fn failure_messages_are_deterministic_and_short() {
    let mut state = state();
    let long = Value::String("x".repeat(1 << 20));
    state.insert(ChannelName::new("long").unwrap(), long.into());
    let fail = |text: &str| {
        let condition = Condition::parse(text).unwrap();
        condition.eval(&state, &ConditionBudget::default()).unwrap_err().to_string()
    };
    let text = "state.plan * {'e': 1, 'd': 1, 'c': 1, 'b': 1, 'a': 1} == 1";
    assert_eq!(fail(text), fail(text));
    assert!(fail(text).contains("'mul': a value of type map, a value of type map"));
    for text in ["{}[state.long] == 1", "[1][state.long] == 1", "state.long * 2 == 1"] {
        assert!(fail(text).len() < 2_100, "{text}");
    }
}

#[test]
fn failures_name_the_condition() {
    for (text, part) in [
        ("state.count", "not a boolean"),
        ("state.kind > 1", "`state.kind > 1` failed"),
        ("state.missing.x == 1", "failed"),
    ] {
        let condition = Condition::parse(text).unwrap();
        let error = condition.eval(&state(), &ConditionBudget::default()).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn invalid_conditions_are_rejected() {
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
        // Whether the text is valid does not matter. Parsing must not exhaust the stack.
        if let Ok(condition) = Condition::parse(&text) {
            let _ = condition.eval(&state(), &ConditionBudget::default());
        }
    }
}

#[test]
fn channels_of_a_condition_are_collected() {
    let condition =
        Condition::parse("state.a.b == 1 && [state['c']].exists(x, x == state.d[x])").unwrap();
    assert_eq!(condition.channels().into_iter().collect::<Vec<_>>(), ["a", "c", "d"]);
}

/// Returns the number of steps of a condition that is true for a list of `length` messages.
fn steps(text: &str, length: u64) -> u64 {
    let message = |n: u64| json!({ "id": n.to_string(), "parts": vec![n; 50] });
    let messages: Vec<Value> = (0..length).map(message).collect();
    let state = Values::from([(ChannelName::new("messages").unwrap(), json!(messages).into())]);
    let budget = ConditionBudget::default();
    let condition = Condition::parse(text).unwrap();
    assert_eq!(condition.eval(&state, &budget), Ok(true), "{text}");
    budget.taken()
}

#[test]
fn conditions_that_do_not_read_items_take_the_same_steps_for_any_list() {
    for text in [
        "size(state.messages) > 5",
        "state.messages.size() % 10 == 0",
        "state.messages != null && has(state.messages)",
        "null != state.messages && size(state) == 1",
    ] {
        assert_eq!(steps(text, 10), steps(text, 2_000), "{text}");
    }
    // The condition reads an item, but not the values in it.
    let last = "state.messages[size(state.messages) - 1].id != ''";
    assert!(steps(last, 2_000) < 2_100, "{}", steps(last, 2_000));
}

fn large() -> Values {
    let numbers: Vec<u64> = (0..3_000).collect();
    let state = json!({
        "op": numbers, "text": "x".repeat(1 << 18), "deep": vec![vec![1; 100]; 100],
        "few": (0..300).collect::<Vec<_>>(),
    });
    let Value::Object(fields) = state else { unreachable!("an object literal") };
    let entries = fields.into_iter();
    entries.map(|(name, value)| (ChannelName::new(name).unwrap(), value.into())).collect()
}

#[test]
fn expensive_conditions_exceed_the_step_limit() {
    let large = large();
    for text in [
        "state.op.exists(a, state.op.exists(b, a + b < 0))",
        "!state.op.all(a, state.op.all(b, a + b >= 0))",
        "size(state.op.map(a, state.op.map(b, a + b))) == 0",
        "state.op.filter(a, state.op.exists_one(b, b < 0)) == []",
        // The loop continues after the limit is exceeded, because `||` swallows errors.
        "state.op.exists(a, state.op.exists(b, b.x == a) || state.op.exists(b, b.x == a))",
        // A condition that is expensive without nested loops.
        "state.op.exists(a, a + 5000 in state.op)",
        "state.op.exists(a, state.op == state.deep)  || state.op.exists(a, [state.op] == [a])",
        "state.op.exists(a, state.op + state.op == [a])",
        "state.op.exists(a, state.text == state.text + 'y')",
        "state.op.exists(a, state.text.contains('y'))",
        "state.op.exists(a, size(state.text) == a)",
        "state.op.exists(a, state.text > state.text)",
        "state.op.exists(a, state[state.text] == a)",
        "state.op.exists(a, state.op[0.5] == a)",
        "state.op.exists(a, {state.text: a} == {})",
        "state.op.exists(a, [state] == [a])",
    ] {
        let condition = Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let budget = ConditionBudget::default();
        let result = condition.eval(&large, &budget);
        let Err(EvalError::Limit(exceeded)) = result else { panic!("{text}: {result:?}") };
        assert_eq!(exceeded.limit, "condition_steps", "{text}");
        assert!(exceeded.message.contains(text), "{}", exceeded.message);
        // The superstep has one limit, so no steps are left for another condition.
        let other = Condition::parse("state.few == []").unwrap();
        assert!(matches!(other.eval(&large, &budget), Err(EvalError::Limit(_))));
    }
}

#[test]
fn ordinary_conditions_on_large_state_stay_within_the_limit() {
    let large = large();
    for (text, wanted) in [
        ("state.op.exists(a, a == 2999)", true),
        ("2999 in state.op", true),
        ("state.few.all(a, state.few.exists(b, b == a))", true),
        ("size(state.op.filter(a, a % 2 == 0)) == 1500", true),
        ("state.text == null", false),
        ("size(state.text) == 262144", true),
        ("state.deep.exists(list, list.exists(n, n == 2))", false),
        ("state.op == state.op", true),
    ] {
        let condition = Condition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(condition.eval(&large, &ConditionBudget::default()), Ok(wanted), "{text}");
    }
}
