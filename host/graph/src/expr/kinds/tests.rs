//! Tests that the kinds agree with the interpreter.

use std::collections::BTreeMap;

use proptest::prelude::{Just, Strategy, prop_assert, prop_oneof, proptest};
use proptest::sample::select;
use serde_json::{Value, json};

use super::Kinds;
use super::check::problems;
use crate::checkpoint::Values;
use crate::expr::{Condition, ConditionBudget};
use crate::id::ChannelName;

/// A value of each kind. Every operation that is defined for the kinds succeeds with these values.
const SAMPLES: [&str; 9] =
    ["null", "true", "1", "1u", "1.0", "'1'", "b'1'", "[1, 2]", "{'1': 1, 1: 2, true: 3}"];

const OPERATORS: [&str; 13] =
    ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "in", "[]"];

fn operation(left: &str, operator: &str, right: &str) -> String {
    match operator {
        "[]" => format!("({left})[{right}]"),
        _ => format!("(({left}) {operator} ({right}))"),
    }
}

fn found(condition: &str, channels: &[(&str, Kinds)]) -> Vec<String> {
    let channels: BTreeMap<&str, Kinds> = channels.iter().copied().collect();
    problems(condition, &|name| channels.get(name).copied().unwrap_or(Kinds::ANY))
}

fn succeeds(condition: &Condition, state: &Values) -> bool {
    condition.eval(state, &ConditionBudget::default()).is_ok()
}

/// Asserts that the check reports a problem with an operation exactly if the interpreter fails.
fn check(operation: &str) {
    // A comparison never fails, and its result is a boolean.
    let condition = format!("{operation} != 'x'");
    let problems = found(&condition, &[]);
    let condition = Condition::parse(&condition).unwrap_or_else(|error| panic!("{error}"));
    let succeeds = succeeds(&condition, &Values::new());
    assert_eq!(problems.is_empty(), succeeds, "{condition:?}: {problems:?}");
}

#[test]
fn operators_have_the_forms_of_the_interpreter() {
    for left in SAMPLES {
        check(&format!("!({left})"));
        check(&format!("-({left})"));
        check(&format!("({left}).field == 1 || has(({left}).field)"));
        for right in SAMPLES {
            for operator in OPERATORS {
                check(&operation(left, operator, right));
            }
        }
    }
}

#[test]
fn functions_have_the_forms_of_the_interpreter() {
    let global = ["size", "int", "uint", "double", "string", "bytes", "bool", "dyn", "type"];
    let on_value = ["contains", "startsWith", "endsWith"];
    for value in SAMPLES {
        check(&format!("({value}).size()"));
        for name in global {
            check(&format!("{name}({value})"));
        }
        for (name, argument) in on_value.iter().flat_map(|name| SAMPLES.map(|it| (name, it))) {
            check(&format!("({value}).{name}({argument})"));
        }
    }
    // Calls in another form, or with other arguments.
    for call in ["size()", "size('a', 'b')", "'1'.int()", "contains('a', 'b')", "'a'.contains()"] {
        check(call);
    }
    for call in ["'a'.matches('a')", "timestamp('2025-01-15T10:30:45Z')", "[1].sum()", "max(1, 2)"]
    {
        check(call);
    }
}

#[test]
fn problems_of_an_expression_are_described() {
    let channels = [
        ("text", Kinds::STRING.or(Kinds::NULL)),
        ("n", Kinds::NUMBER.or(Kinds::NULL)),
        ("list", Kinds::LIST.or(Kinds::NULL)),
        ("flag", Kinds::BOOL.or(Kinds::NULL)),
    ];
    for (condition, expected) in [
        ("state.text >= 5", "`>=` cannot be applied to string and int"),
        ("state['text'] >= 5", "`>=` cannot be applied to string and int"),
        ("5 in state.text", "`in` cannot be applied to int and string"),
        ("state.list[state.text] == 1", "`[]` cannot be applied to list and string"),
        ("state.n.field == 1", "`.field` cannot be applied to number"),
        ("size(state.n) > 1", "`size` cannot be applied to number"),
        ("state.flag == null || state.text > 5", "`>` cannot be applied to string and int"),
        ("state.flag && state.text", "`&&` cannot be applied to bool and string"),
        (
            "state.list.exists(item, state.text)",
            "string is used as a condition, which must be bool",
        ),
        ("state.list.filter(item, 1) == []", "int is used as a condition, which must be bool"),
        ("state.n ? true : false", "number is used as a condition, which must be bool"),
        ("state.n.all(item, true)", "a loop cannot run over number"),
        ("state.list.exists(state.flag)", "`exists` is written `list.exists(item, ...)`"),
        (
            "state.text.startswith('a')",
            "there is no function `startswith`: did you mean `startsWith`?",
        ),
        ("state.text.matches('a')", "there is no function `matches`"),
        ("state.text.int() == 1", "`int` is written `int(x)`"),
        ("contains(state.text, 'a')", "`contains` is written `x.contains(y)`"),
        ("type(state.n) > 1", "`>` cannot be applied to type and int"),
        ("state.text", "the result is string, not bool"),
        ("state.list.map(item, item)", "the result is list, not bool"),
    ] {
        assert_eq!(found(condition, &channels), [expected], "{condition}");
    }
}

#[test]
fn expressions_that_can_succeed_are_accepted() {
    let channels = [
        ("text", Kinds::STRING.or(Kinds::NULL)),
        ("n", Kinds::NUMBER.or(Kinds::NULL)),
        ("list", Kinds::LIST.or(Kinds::NULL)),
        ("any", Kinds::JSON),
    ];
    for condition in [
        "state.n < 3",
        "state.n + 1 > 0.5 && state.n % 2 == 0",
        "state.text == 5",
        "state.text == null || size(state.text) > 3 && state.text.startsWith('a')",
        "state.any > 5 || state.any.startsWith('a') || state.any.field == 1 || state.any[0] == 1",
        "state.any",
        "state.any.all(key, key != '')",
        "state.list.exists(item, item.n > 1) && state.list.exists_one(item, item == 1)",
        "state.list.map(item, item.n) == [1] && size(state.list.filter(item, item > 1)) > 0",
        "[1].exists(state, state > 0)",
        "type(state.n) == int && dyn(state.text) > 5",
        "has(state.any.field) && 'a' in state.list && 'a' in state.any",
        "state[state.text] == 1",
        "size(state) > 1",
        "double(state.n) + 0.5 > 1.0 && string(state.n) + 'x' == '1x'",
    ] {
        assert_eq!(found(condition, &channels), [""; 0], "{condition}");
    }
}

#[test]
fn kinds_of_a_schema_cover_its_values() {
    let node =
        json!({ "$defs": { "a": { "anyOf": [{ "$ref": "#/$defs/a" }, { "type": "string" }] } } });
    let circular = |mut schema: Value| {
        schema["$ref"] = "#/$defs/a".into();
        schema
    };
    for (schema, expected) in [
        (json!({}), Kinds::JSON),
        (json!(true), Kinds::JSON),
        (json!({ "type": "integer" }), Kinds::NUMBER),
        (json!({ "type": ["string", "null"] }), Kinds::STRING.or(Kinds::NULL)),
        (json!({ "enum": ["a", 1] }), Kinds::STRING.or(Kinds::NUMBER)),
        (json!({ "const": [] }), Kinds::LIST),
        (json!({ "type": "string", "enum": ["a", 1] }), Kinds::STRING),
        (json!({ "anyOf": [{ "type": "object" }, { "const": true }] }), Kinds::MAP.or(Kinds::BOOL)),
        (json!({ "oneOf": [{ "type": "array" }, {}] }), Kinds::JSON),
        (json!({ "allOf": [{ "type": ["array", "object"] }, { "type": "array" }] }), Kinds::LIST),
        (json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "null" } } }), Kinds::NULL),
        (json!({ "$ref": "#anchor", "$defs": {} }), Kinds::JSON),
        (circular(node), Kinds::JSON),
        (json!({ "type": "string", "enum": [1] }), Kinds::JSON),
        (
            json!({ "type": "string", "$schema": "http://json-schema.org/draft-04/schema#" }),
            Kinds::JSON,
        ),
    ] {
        assert_eq!(Kinds::of_schema(&schema), expected, "{schema}");
    }
}

/// Schemas with values that fit them.
fn schemas() -> Vec<(Value, Vec<Value>)> {
    let schema = |kind: &str| json!({ "type": kind });
    let defs = json!({ "n": { "const": 5 } });
    vec![
        (schema("string"), vec![json!(""), json!("1")]),
        (schema("integer"), vec![json!(0), json!(-3), json!(1.0), json!(u64::MAX)]),
        (schema("number"), vec![json!(0.5), json!(7)]),
        (schema("boolean"), vec![json!(true), json!(false)]),
        (schema("array"), vec![json!([]), json!([1, "1"])]),
        (schema("object"), vec![json!({}), json!({ "1": [], "field": 1 })]),
        (json!({ "enum": ["1", null] }), vec![json!("1"), json!(null)]),
        (
            json!({ "anyOf": [{ "type": "array" }, { "$ref": "#/$defs/n" }], "$defs": defs }),
            vec![json!([true]), json!(5)],
        ),
        (json!({}), vec![json!("1"), json!(1), json!({}), json!([0]), json!(true)]),
    ]
}

/// Generates expressions whose parts are all evaluated, so that a failure of a part is a failure of
/// the expression.
fn expression() -> impl Strategy<Value = String> {
    let literals = SAMPLES.map(str::to_owned).to_vec();
    let leaf =
        prop_oneof![select(vec!["state.a".to_owned(), "state.b".to_owned()]), select(literals),];
    leaf.prop_recursive(3, 10, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            (select(OPERATORS.to_vec()), pair.clone())
                .prop_map(|(operator, (left, right))| operation(&left, operator, &right)),
            pair.prop_map(|(text, part)| format!("({text}).startsWith({part})")),
            (select(vec!["!", "-", "size", "int", "string", "type"]), inner.clone())
                .prop_map(|(name, inner)| format!("{name}({inner})")),
            (inner, Just(".field")).prop_map(|(inner, field)| format!("({inner}){field}")),
        ]
    })
}

proptest! {
    #[test]
    fn a_condition_with_a_problem_fails_for_every_state(
        condition in expression(),
        a in select(schemas()),
        b in select(schemas()),
    ) {
        let kinds = |schema: &Value| Kinds::of_schema(schema).or(Kinds::NULL);
        let problems = found(&condition, &[("a", kinds(&a.0)), ("b", kinds(&b.0))]);
        let condition = Condition::parse(&condition).unwrap();
        let values = |(_, values): (Value, Vec<Value>)| {
            values.into_iter().map(Some).chain([None]).collect::<Vec<_>>()
        };
        let (all_a, all_b) = (values(a), values(b));
        for (a, b) in all_a.iter().flat_map(|a| all_b.iter().map(move |b| (a, b))) {
            let given = [("a", a), ("b", b)].into_iter();
            let given = given.filter_map(|(name, value)| Some((name, value.as_ref()?)));
            let state: Values = given
                .map(|(name, value)| (ChannelName::new(name).unwrap(), value.clone().into()))
                .collect();
            let fails = problems.is_empty() || !succeeds(&condition, &state);
            prop_assert!(fails, "{condition:?}: {problems:?}: {state:?}");
        }
    }
}
