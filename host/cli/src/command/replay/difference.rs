//! Where two JSON values differ.

use serde_json::Value;

/// Maximum number of characters that are shown of a value.
const MAX_SHOWN_CHARS: usize = 400;

/// Number of equal characters that are shown before the first difference of two strings.
const CONTEXT_CHARS: usize = 40;

/// Maximum number of places that two pairs of values may differ in to be compared by them.
const MAX_PLACES: usize = 20;

/// A difference of two JSON values: a recorded one and the present one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference<'v> {
    /// JSON pointer of what differs; empty if the values differ as a whole.
    pub(super) pointer: String,
    /// What the recorded value has there, if anything.
    pub(super) then: Option<&'v Value>,
    /// What the present value has there, if anything.
    pub(super) now: Option<&'v Value>,
}

impl<'v> Difference<'v> {
    /// Returns the difference of two values as a whole.
    pub(super) fn whole(then: &'v Value, now: &'v Value) -> Self {
        Self { pointer: String::new(), then: Some(then), now: Some(now) }
    }

    /// Describes the difference: its place, if it is not the whole value, and what is there. Of two
    /// strings, the parts around their first difference are shown.
    pub(super) fn lines(&self) -> Vec<String> {
        let Self { pointer, then, now } = self;
        let start = match (then, now) {
            (Some(Value::String(then)), Some(Value::String(now))) => {
                let same = then.chars().zip(now.chars()).take_while(|(then, now)| then == now);
                same.count().saturating_sub(CONTEXT_CHARS)
            }
            _ => 0,
        };
        let (then, now) = (excerpt(*then, start), excerpt(*now, start));
        if pointer.is_empty() {
            return vec![format!("then  {then}"), format!("now   {now}")];
        }
        vec![pointer.clone(), format!("  then  {then}"), format!("  now   {now}")]
    }
}

/// All differences of two JSON values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Differences<'v> {
    /// The first difference, in the order of the recorded value.
    pub(super) first: Option<Difference<'v>>,
    /// Number of differences.
    pub(super) count: usize,
    /// Pointers of the first [`MAX_PLACES`] differences.
    places: Vec<String>,
}

impl<'v> Differences<'v> {
    /// Compares two values. Objects with a common field and arrays are compared by their members.
    pub(super) fn between(then: &'v Value, now: &'v Value) -> Self {
        let mut differences = Self::default();
        differences.compare(&mut String::new(), Some(then), Some(now));
        differences
    }

    /// Returns the pointers of all differences; `None` if there are none or very many.
    pub(super) fn places(&self) -> Option<&[String]> {
        (self.count > 0 && self.count == self.places.len()).then_some(self.places.as_slice())
    }

    fn compare(&mut self, pointer: &mut String, then: Option<&'v Value>, now: Option<&'v Value>) {
        match (then, now) {
            _ if then == now => {}
            (Some(Value::Object(then)), Some(Value::Object(now)))
                if then.keys().any(|name| now.contains_key(name)) =>
            {
                let added = now.iter().filter(|(name, _)| !then.contains_key(*name));
                for (name, value) in then {
                    self.compare_member(pointer, name, Some(value), now.get(name));
                }
                for (name, value) in added {
                    self.compare_member(pointer, name, None, Some(value));
                }
            }
            (Some(Value::Array(then)), Some(Value::Array(now))) => {
                for index in 0..then.len().max(now.len()) {
                    let name = index.to_string();
                    self.compare_member(pointer, &name, then.get(index), now.get(index));
                }
            }
            _ => self.add(pointer, then, now),
        }
    }

    fn compare_member(
        &mut self,
        pointer: &mut String,
        name: &str,
        then: Option<&'v Value>,
        now: Option<&'v Value>,
    ) {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
        self.compare(pointer, then, now);
        pointer.truncate(length);
    }

    fn add(&mut self, pointer: &str, then: Option<&'v Value>, now: Option<&'v Value>) {
        self.count += 1;
        if self.places.len() < MAX_PLACES {
            self.places.push(pointer.to_owned());
        }
        self.first.get_or_insert_with(|| Difference { pointer: pointer.to_owned(), then, now });
    }
}

/// Formats a value on one line, without the first `start` characters of a string.
fn excerpt(value: Option<&Value>, start: usize) -> String {
    let text = match value {
        None => return "nothing".to_owned(),
        Some(Value::String(text)) if start > 0 => {
            let part: String = text.chars().skip(start).take(MAX_SHOWN_CHARS).collect();
            format!("...{}", Value::String(part))
        }
        Some(value) => value.to_string(),
    };
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the pointers of the differences of two values.
    fn places(then: &Value, now: &Value) -> Vec<String> {
        Differences::between(then, now).places
    }

    #[test]
    fn differences_are_found_at_the_innermost_values() {
        let then = json!({ "a/b": [1, { "~": "x", "gone": 1 }], "same": { "x": [1] } });
        let now = json!({ "same": { "x": [1] }, "a/b": [1, { "~": "y" }, 3], "new": null });
        assert_eq!(places(&then, &now), ["/a~1b/1/~0", "/a~1b/1/gone", "/a~1b/2", "/new"]);
        let differences = Differences::between(&then, &now);
        let (x, y) = (json!("x"), json!("y"));
        let pointer = "/a~1b/1/~0".to_owned();
        let first = Difference { pointer, then: Some(&x), now: Some(&y) };
        assert_eq!((differences.first, differences.count), (Some(first), 4));
        assert_eq!(Differences::between(&then, &then), Differences::default());
    }

    #[test]
    fn values_of_different_kinds_differ_as_a_whole() {
        for (then, now) in [(json!(1), json!("1")), (json!([1]), json!({ "0": 1 }))] {
            assert_eq!(places(&then, &now), [""]);
        }
        assert_eq!(places(&json!({ "writes": [] }), &json!({ "code": "x" })), [""]);
    }

    #[test]
    fn very_many_places_are_not_compared() {
        let values = |from: usize, count: usize| json!((from..from + count).collect::<Vec<_>>());
        let (then, now) = (values(0, MAX_PLACES), values(1, MAX_PLACES));
        assert_eq!(Differences::between(&then, &now).places().map(<[_]>::len), Some(MAX_PLACES));
        let (then, now) = (values(0, MAX_PLACES + 1), values(1, MAX_PLACES + 1));
        let differences = Differences::between(&then, &now);
        assert_eq!((differences.count, differences.places()), (MAX_PLACES + 1, None));
    }

    #[test]
    fn long_strings_are_shown_around_their_first_difference() {
        let same = "x".repeat(MAX_SHOWN_CHARS);
        let (then, now) = (json!(format!("{same}then")), json!(format!("{same}now")));
        let context = "x".repeat(CONTEXT_CHARS);
        let expected =
            [format!("then  ...\"{context}then\""), format!("now   ...\"{context}now\"")];
        assert_eq!(Difference::whole(&then, &now).lines(), expected);
        let long = json!("y".repeat(2 * MAX_SHOWN_CHARS));
        let lines = Difference { now: None, ..Difference::whole(&long, &now) }.lines();
        assert!(lines[0].ends_with("y..."), "{lines:?}");
        assert_eq!((lines[0].len(), lines[1].as_str()), (6 + MAX_SHOWN_CHARS + 3, "now   nothing"));
    }
}
