//! Matchers for the values that a data set expects.

use regex::Regex;
use serde_json::{Map, Value};

use crate::cases::date::{DateSpec, Today};
use crate::cases::pointer::Selected;

/// A matcher.
#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    Equal(Value),
    Object(Vec<(String, Matcher)>),
    Array(Vec<Matcher>),
    OneOf(Vec<Matcher>),
    AllOf(Vec<Matcher>),
    Not(Box<Matcher>),
    Matches(Regex),
    Contains(Box<Matcher>),
    Absent(bool),
    Near { value: f64, tolerance: f64 },
    Date(DateSpec),
    Length(Box<Matcher>),
    Type(&'static str),
    Every(Box<Matcher>),
    Values(Vec<Matcher>),
    Count(Box<Matcher>),
}

const OPERATORS: &str = "`$one_of`, `$all_of`, `$not`, `$matches`, `$contains`, `$absent`, \
                         `$near`, `$date`, `$length`, `$type`, `$every`, `$values` and `$count`";

const TYPES: [&str; 6] = ["string", "number", "boolean", "array", "object", "null"];

impl Matcher {
    /// Parses a matcher.
    pub(crate) fn parse(value: &Value) -> Result<Self, String> {
        match value {
            Value::Object(fields) => match fields.keys().find(|key| key.starts_with('$')) {
                Some(name) => parse_operator(name, fields),
                None => fields
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), Self::parse(value)?)))
                    .collect::<Result<_, String>>()
                    .map(Self::Object),
            },
            Value::Array(items) => parse_each(items).map(Self::Array),
            _ => Ok(Self::Equal(value.clone())),
        }
    }

    /// Returns true if the matcher accepts the values of a pointer.
    pub(crate) fn matches_selected(&self, selected: &Selected<'_>, today: &Today) -> bool {
        match selected {
            Selected::One(value) => self.matches(*value, today),
            Selected::Many(values) => self.matches_many(values, today),
        }
    }

    /// Returns true if the matcher accepts a value.
    pub(crate) fn matches_value(&self, value: &Value, today: &Today) -> bool {
        self.matches(Some(value), today)
    }

    fn matches_many(&self, values: &[&Value], today: &Today) -> bool {
        match self {
            Self::OneOf(any) => any.iter().any(|it| it.matches_many(values, today)),
            Self::AllOf(all) => all.iter().all(|it| it.matches_many(values, today)),
            Self::Not(other) => !values.is_empty() && !other.matches_many(values, today),
            Self::Absent(wanted) => values.iter().all(|value| value.is_null()) == *wanted,
            Self::Every(each) => {
                !values.is_empty() && values.iter().all(|value| each.matches(Some(value), today))
            }
            Self::Values(wanted) => match_in_order(wanted, values.iter().copied(), today),
            Self::Count(count) => count.matches(Some(&values.len().into()), today),
            one => values.iter().any(|value| one.matches(Some(value), today)),
        }
    }

    fn matches(&self, value: Option<&Value>, today: &Today) -> bool {
        if let Self::Absent(wanted) = self {
            return value.is_none_or(Value::is_null) == *wanted;
        }
        let any = |all: &[Self]| all.iter().any(|it| it.matches(value, today));
        if let Self::OneOf(all) = self {
            return any(all);
        }
        let Some(value) = value else { return false };
        match self {
            Self::Equal(wanted) => equal(wanted, value),
            Self::Object(fields) => {
                value.is_object()
                    && fields.iter().all(|(key, wanted)| wanted.matches(value.get(key), today))
            }
            Self::Array(wanted) | Self::Values(wanted) => {
                value.as_array().is_some_and(|items| match_in_order(wanted, items.iter(), today))
            }
            Self::AllOf(all) => all.iter().all(|it| it.matches(Some(value), today)),
            Self::Not(other) => !other.matches(Some(value), today),
            Self::Matches(regex) => value.as_str().is_some_and(|text| regex.is_match(text)),
            Self::Contains(part) => contains(value, part, today),
            Self::Near { value: wanted, tolerance } => {
                value.as_f64().is_some_and(|found| (found - wanted).abs() <= *tolerance)
            }
            Self::Date(day) => day.matches(value, today),
            Self::Length(wanted) => {
                length(value).is_some_and(|length| wanted.matches(Some(&length.into()), today))
            }
            Self::Type(name) => type_of(value) == *name,
            Self::Every(each) => value.as_array().is_some_and(|items| {
                !items.is_empty() && items.iter().all(|item| each.matches(Some(item), today))
            }),
            Self::Count(_) | Self::Absent(_) | Self::OneOf(_) => false,
        }
    }
}

fn parse_operator(name: &str, fields: &Map<String, Value>) -> Result<Matcher, String> {
    let more = fields.keys().find(|key| *key != name && !(name == "$date" && *key == "zone"));
    if let Some(more) = more {
        return Err(format!("`{more}` is not allowed next to `{name}`"));
    }
    let value = &fields[name];
    let inner = || Matcher::parse(value).map(Box::new);
    let list = || parse_each(value.as_array().ok_or_else(|| format!("`{name}` must be an array"))?);
    let text = || value.as_str().ok_or_else(|| format!("`{name}` must be a string"));
    Ok(match name {
        "$one_of" => Matcher::OneOf(list()?),
        "$all_of" => Matcher::AllOf(list()?),
        "$not" => Matcher::Not(inner()?),
        "$matches" => {
            let regex = Regex::new(text()?);
            Matcher::Matches(regex.map_err(|error| format!("`$matches` is invalid: {error}"))?)
        }
        "$contains" => Matcher::Contains(inner()?),
        "$absent" => Matcher::Absent(value.as_bool().ok_or("`$absent` must be true or false")?),
        "$near" => {
            parse_near(value).ok_or("`$near` must be a number and a tolerance: `[320, 0.01]`")?
        }
        "$date" => {
            let zone =
                fields.get("zone").map(|zone| zone.as_str().ok_or("`zone` must be a string"));
            Matcher::Date(DateSpec::parse(text()?, zone.transpose()?)?)
        }
        "$length" => Matcher::Length(inner()?),
        "$type" => {
            let word = text()?;
            let known = TYPES.iter().find(|known| **known == word);
            Matcher::Type(
                known.ok_or_else(|| format!("`$type` must be one of {}", TYPES.join(", ")))?,
            )
        }
        "$every" => Matcher::Every(inner()?),
        "$values" => Matcher::Values(list()?),
        "$count" => Matcher::Count(inner()?),
        _ => return Err(format!("there is no matcher `{name}`; the matchers are {OPERATORS}")),
    })
}

fn parse_each(items: &[Value]) -> Result<Vec<Matcher>, String> {
    items.iter().map(Matcher::parse).collect()
}

fn parse_near(value: &Value) -> Option<Matcher> {
    let [value, tolerance] = value.as_array()?.as_slice() else { return None };
    Some(Matcher::Near { value: value.as_f64()?, tolerance: tolerance.as_f64()? })
}

fn match_in_order<'a>(
    wanted: &[Matcher],
    found: impl ExactSizeIterator<Item = &'a Value>,
    today: &Today,
) -> bool {
    wanted.len() == found.len()
        && wanted.iter().zip(found).all(|(wanted, found)| wanted.matches(Some(found), today))
}

/// Compares numbers by value, because a model may write `1` for `1.0`.
fn equal(wanted: &Value, found: &Value) -> bool {
    match (wanted.as_f64(), found.as_f64()) {
        (Some(wanted_number), Some(number)) => {
            wanted == found || (wanted_number - number).abs() == 0.0
        }
        _ => wanted == found,
    }
}

fn contains(value: &Value, part: &Matcher, today: &Today) -> bool {
    match (value, part) {
        (Value::String(text), Matcher::Equal(Value::String(part))) => text.contains(part.as_str()),
        (Value::Array(items), part) => items.iter().any(|item| part.matches(Some(item), today)),
        _ => false,
    }
}

fn length(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        Value::Object(fields) => Some(fields.len()),
        _ => None,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Null => "null",
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::json;

    use super::*;
    use crate::cases::pointer::Pointer;

    fn today() -> Today {
        Today { now_ms: 1_736_908_245_000, zone: TimeZone::UTC }
    }

    fn matches(matcher: &Value, value: &Value) -> bool {
        Matcher::parse(matcher).unwrap().matches(Some(value), &today())
    }

    fn check(matcher: &Value, yes: &[Value], no: &[Value]) {
        for value in yes {
            assert!(matches(matcher, value), "{matcher} does not match {value}");
        }
        for value in no {
            assert!(!matches(matcher, value), "{matcher} matches {value}");
        }
    }

    #[test]
    fn literals_match_equal_values_and_objects_may_have_more_fields() {
        check(&json!(1), &[json!(1), json!(1.0)], &[json!(2), json!("1"), json!(null)]);
        check(&json!({"a": 1}), &[json!({"a": 1, "b": 2})], &[json!({"b": 2}), json!([1])]);
        check(&json!([1, {"$near": [2, 0.5]}]), &[json!([1, 2.4])], &[json!([1]), json!([1, 3])]);
        check(
            &json!({"a": {"$absent": true}}),
            &[json!({}), json!({"a": null})],
            &[json!({"a": 0})],
        );
    }

    #[test]
    fn matchers_accept_and_reject_values() {
        check(&json!({"$one_of": ["a", 2]}), &[json!("a"), json!(2)], &[json!("b")]);
        check(&json!({"$not": "a"}), &[json!("b"), json!(null)], &[json!("a")]);
        check(
            &json!({"$matches": "(?i)^se(ll|t)"}),
            &[json!("SELL now")],
            &[json!("a sell"), json!(1)],
        );
        check(&json!({"$contains": "ell"}), &[json!("sell")], &[json!("buy"), json!(["buy"])]);
        check(&json!({"$contains": {"a": 1}}), &[json!([{"a": 2}, {"a": 1}])], &[json!([])]);
        check(
            &json!({"$near": [320, 0.01]}),
            &[json!(320.01), json!(320)],
            &[json!(320.1), json!("320")],
        );
        check(&json!({"$length": 2}), &[json!("中文"), json!([1, 2])], &[json!("a"), json!(2)]);
        check(&json!({"$type": "array"}), &[json!([])], &[json!({}), json!("[]")]);
        check(
            &json!({"$every": {"$type": "number"}}),
            &[json!([1])],
            &[json!([]), json!([1, "2"])],
        );
        let both = json!({"$all_of": [{"$contains": "a"}, {"$contains": "b"}]});
        check(&both, &[json!("ba")], &[json!("a")]);
        check(&json!({"$date": "0d"}), &[json!("2025-01-15")], &[json!("2025-01-14")]);
    }

    #[test]
    fn by_default_at_least_one_of_several_values_must_match() {
        let document = json!({ "state": { "rows": [{"a": 1}, {"a": 2}, {"b": 3}] } });
        let matches = |pointer: &str, matcher: Value| {
            let pointer = Pointer::parse(pointer).unwrap();
            let matcher = Matcher::parse(&matcher).unwrap();
            matcher.matches_selected(&pointer.select(&document), &today())
        };
        assert!(matches("/state/rows/*/a", json!(2)));
        assert!(!matches("/state/rows/*/a", json!(3)));
        assert!(matches("/state/rows/*/a", json!({"$values": [1, 2]})));
        assert!(!matches("/state/rows/*/a", json!({"$values": [2, 1]})));
        assert!(!matches("/state/rows/*/a", json!({"$every": 1})));
        assert!(matches("/state/rows/*/a", json!({"$all_of": [1, {"$count": 2}, {"$not": 7}]})));
        assert!(!matches("/state/rows/*/a", json!({"$not": 1})));
        assert!(matches("/state/rows/*/c", json!({"$absent": true})));
        assert!(matches("/state/rows/*/c", json!({"$count": 0})));
        assert!(!matches("/state/rows/*/c", json!({"$not": 1})));
    }

    #[test]
    fn invalid_matchers_are_refused_with_the_valid_ones() {
        let refused = |matcher: Value| Matcher::parse(&matcher).unwrap_err();
        assert!(refused(json!({"$like": "x"})).contains("`$matches`"));
        assert!(refused(json!({"$near": [1]})).contains("tolerance"));
        assert!(refused(json!({"$matches": "(?=a)"})).contains("regex"));
        assert!(refused(json!({"$not": 1, "b": 2})).contains("`b` is not allowed next to"));
        assert!(refused(json!({"$type": "text"})).contains("string, number"));
        assert!(refused(json!({"a": [{"$one_of": 1}]})).contains("must be an array"));
    }
}
