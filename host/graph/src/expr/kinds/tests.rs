//! Tests that the kinds agree with the interpreter.

use std::collections::BTreeMap;

use proptest::prelude::{Just, Strategy, prop_assert, prop_oneof, proptest};
use proptest::sample::select;
use serde_json::{Value, json};

use super::Kinds;
use super::schema::{MEMBER_PARTS, ValueType};
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
    let channels: Vec<(&str, ValueType<'_>)> =
        channels.iter().map(|(name, kinds)| (*name, (*kinds).into())).collect();
    found_in(condition, &channels, MEMBER_PARTS)
}

fn found_in(
    condition: &str,
    channels: &[(&str, ValueType<'_>)],
    mut parts_left: u32,
) -> Vec<String> {
    let channels: BTreeMap<&str, ValueType<'_>> = channels.iter().copied().collect();
    let channel = |name: &str| channels.get(name).copied().unwrap_or(ValueType::ANY);
    super::check::check(condition, &channel, &mut parts_left).problems
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
        assert_eq!(ValueType::of_schema(&schema).kinds, expected, "{schema}");
    }
}

/// The schema of an order, whose lines are in another part of the document.
fn order() -> Value {
    let line = json!({
        "properties": { "n": { "type": "integer" }, "sku": { "type": "string" } },
        "additionalProperties": false,
    });
    let properties = json!({
        "any": {},
        "either": { "anyOf": [{ "type": "string" }, { "type": "number" }] },
        "flags": { "type": "object", "additionalProperties": { "type": "boolean" } },
        "lines": { "type": ["array", "null"], "items": { "$ref": "#/$defs/line" } },
        "next": { "allOf": [{ "$ref": "#" }] },
        "note": { "type": ["string", "null"] },
        "open": { "type": "object", "properties": { "n": { "type": "integer" } } },
        "patterns": { "patternProperties": { "x": {} }, "additionalProperties": false },
        "row": { "prefixItems": [{ "type": "string" }], "items": { "type": "integer" } },
        "sealed": { "additionalProperties": false },
        "shape": { "anyOf": [
            { "properties": { "r": { "type": "number" } }, "additionalProperties": false },
            { "properties": { "side": { "type": "number" } }, "additionalProperties": false },
        ] },
        "total": { "type": "number" },
    });
    let line = json!({ "line": line });
    json!({ "properties": properties, "additionalProperties": false, "$defs": line })
}

#[test]
fn problems_of_members_are_described() {
    let order = order();
    let channels = [("order", ValueType::of_schema(&order).or_null())];
    let number_and_text = "`>` cannot be applied to number and string";
    for (condition, expected) in [
        ("state.order.total > 'x'", number_and_text),
        ("state['order']['total'] > 'x'", number_and_text),
        ("state.order.next.next.total > 'x'", number_and_text),
        ("state.order.open.n > 'x'", number_and_text),
        ("state.order.lines[0].n > 'x'", number_and_text),
        ("state.order.lines[state.order.total].n > 'x'", number_and_text),
        ("state.order.lines.exists(line, line.n > 'x')", number_and_text),
        ("state.order.note > 1", "`>` cannot be applied to string and int"),
        ("state.order.flags.gift > 1", "`>` cannot be applied to bool and int"),
        ("state.order.total.sum == 1", "`.sum` cannot be applied to number"),
        ("state.order.total", "the result is number, not bool"),
        (
            "state.order.lines[0].skus == 'a'",
            "`state.order.lines[0]` has no property `skus`: did you mean `sku`? properties: `n`, \
             `sku`",
        ),
        (
            "state.order.next['lines'].all(line, line['count'] > 1)",
            "`line` has no property `count`: properties: `n`, `sku`",
        ),
        ("state.order.sealed.x == 1", "`state.order.sealed` has no property `x`: properties: none"),
        ("has(state.order.sealed.x) || state.order.total > 'x'", number_and_text),
        (
            "state.order.lines.all(line, has(line.sku) && line.count > 1)",
            "`line` has no property `count`: properties: `n`, `sku`",
        ),
    ] {
        assert_eq!(found_in(condition, &channels, MEMBER_PARTS), [expected], "{condition}");
    }
}

#[test]
fn members_that_can_have_the_kinds_are_accepted() {
    let order = order();
    let channels = [("order", ValueType::of_schema(&order).or_null())];
    for condition in [
        "state.order.any > 1 || state.order.any.x.y > 'x' || state.order.any[0]",
        "state.order.either > 'x' || state.order.either > 1",
        "state.order.flags.gift && state.order.flags[state.order.note]",
        "state.order.lines == null || state.order.lines.exists(line, line.n > 1 || line.sku > 'x')",
        "state.order.lines.map(line, line.n)[0].x == 1",
        "state.order.note == null || state.order.note == 5 || state.order.note > 'x'",
        "state.order.open.more > 1 || state.order.open.more.x > 'x'",
        "state.order.patterns.x > 1 || state.order.patterns.y",
        "state.order.row[0] > 'x' || state.order.row[1] > 1",
        "state.order.shape.r > 1 || state.order.shape.side > 'x'",
        "has(state.order.totl) || 'totl' in state.order",
        "has(state.order.totl) && state.order.totl > 1",
        "state.order.any && has(state.order.totl) && state.order.totl > 1 && state.order.any",
        "!has(state.order.totl) || state.order.totl > 1",
        "has(state.order.totl) ? state.order.totl > 1 : state.order.any",
        "state.order.lines.all(line, has(line.count) && line.count > 1)",
        "state.order.exists(key, key.x > 1)",
        "state.order[state.order.note] > 1",
        "[1].exists(state, state.order.total > 'x')",
    ] {
        assert_eq!(found_in(condition, &channels, MEMBER_PARTS), [""; 0], "{condition}");
    }
}

#[test]
fn members_of_other_schema_documents_have_unknown_kinds() {
    let closed = |key: &str, value: &str| json!({ key: value, "additionalProperties": false });
    for schema in [
        closed("$schema", "http://json-schema.org/draft-04/schema#"),
        json!({ "properties": { "x": closed("$id", "https://example.com/x") } }),
    ] {
        let channels = [("a", ValueType::of_schema(&schema))];
        assert_eq!(found_in("state.a.x.y == 1", &channels, MEMBER_PARTS), [""; 0], "{schema}");
    }
}

#[test]
fn the_number_of_subschemas_that_are_read_for_members_is_bounded() {
    let circle = json!({ "$ref": "#/$defs/a" });
    let all = json!({ "a": { "allOf": vec![circle.clone(); 100] } });
    let circular = json!({ "allOf": [circle], "$defs": all });
    let channels = [("a", ValueType::of_schema(&circular))];
    assert_eq!(found_in("state.a.b[0].c > 1", &channels, MEMBER_PARTS), [""; 0]);
    let schema = json!({ "properties": { "n": { "type": "number" } } });
    let channels = [("a", ValueType::of_schema(&schema))];
    // One subschema has the property, and the other one is that of the property.
    for (parts, count) in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)] {
        let found = found_in("state.a.n > 'x' || state.a.n > 'y'", &channels, parts);
        assert_eq!(found.len(), count, "{parts}: {found:?}");
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
        (
            json!({
                "type": "object",
                "properties": { "p": schema("number"), "q": { "$ref": "#/$defs/n" } },
                "additionalProperties": false,
                "$defs": { "n": { "type": ["array", "null"], "items": schema("integer") } },
            }),
            vec![json!({}), json!({ "p": 1 }), json!({ "p": 0.5, "q": [1] }), json!({ "q": null })],
        ),
        (
            json!({
                "properties": { "p": schema("string") },
                "additionalProperties": schema("boolean"),
                "items": { "properties": { "p": schema("array") } },
            }),
            vec![json!({ "p": "1", "q": true }), json!([{ "p": ["1"] }, 1]), json!(1), json!("1")],
        ),
        (
            json!({ "anyOf": [
                { "type": "object", "properties": { "p": schema("number") }, "required": ["p"] },
                { "properties": { "q": schema("string") } },
            ] }),
            vec![json!({ "p": 1 }), json!({ "p": "1", "q": "1" }), json!([1]), json!(true)],
        ),
    ]
}

/// Generates expressions whose parts are all evaluated, so that a failure of a part is a failure of
/// the expression.
fn expression() -> impl Strategy<Value = String> {
    const CHANNELS: [&str; 9] = [
        "state.a",
        "state.b",
        "state.a.p",
        "state.a['q']",
        "state.a.p[0]",
        "state.a.other",
        "state.a[0].p",
        "state.b.p",
        "state.b.q[0]",
    ];
    let literals = SAMPLES.map(str::to_owned).to_vec();
    let channels = CHANNELS.map(str::to_owned).to_vec();
    let leaf = prop_oneof![select(channels), select(literals)];
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
        let types = [("a", &a.0), ("b", &b.0)];
        let types = types.map(|(name, schema)| (name, ValueType::of_schema(schema).or_null()));
        let problems = found_in(&condition, &types, MEMBER_PARTS);
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
