//! Splits texts into words, for ranking.
//!
//! A word is a run of letters and digits, in lower case. Scripts that are written without spaces
//! have no such runs. There, every pair of adjacent letters is a word, and in documents every
//! single letter as well.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

/// The words of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query(HashMap<String, usize>);

impl Query {
    /// Splits a query into words.
    pub(crate) fn new(text: &str) -> Self {
        let mut words = BTreeSet::new();
        each_word(text, Letters::IfAlone, &mut |word| {
            words.insert(word.to_owned());
        });
        Self(words.into_iter().zip(0..).collect())
    }

    /// Returns the share of the words that a document contains in its key, field names or values;
    /// `None` if it contains none of them.
    pub(crate) fn score(&self, key: &str, value: &Value) -> Option<f64> {
        let mut held = vec![false; self.0.len()];
        let mut look = |word: &str| {
            if let Some(place) = self.0.get(word) {
                held[*place] = true;
            }
        };
        each_word(key, Letters::Always, &mut look);
        each_word_of(value, &mut look);
        let hits = held.iter().filter(|held| **held).count();
        (hits > 0).then(|| hits as f64 / held.len() as f64)
    }
}

/// Calls `look` for each word of a document. The recursion ends, since deeply nested documents are
/// refused when they are written.
fn each_word_of(value: &Value, look: &mut impl FnMut(&str)) {
    match value {
        Value::Null => {}
        Value::Bool(flag) => look(if *flag { "true" } else { "false" }),
        Value::Number(number) => each_word(&number.to_string(), Letters::Always, look),
        Value::String(text) => each_word(text, Letters::Always, look),
        Value::Array(items) => items.iter().for_each(|item| each_word_of(item, look)),
        Value::Object(fields) => {
            for (name, item) in fields {
                each_word(name, Letters::Always, look);
                each_word_of(item, look);
            }
        }
    }
}

/// Whether a single letter of a script without spaces counts as a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letters {
    Always,
    IfAlone,
}

fn each_word(text: &str, letters: Letters, look: &mut impl FnMut(&str)) {
    let lower = text.to_lowercase();
    for run in lower.split(|letter: char| !letter.is_alphanumeric()) {
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let is_dense = is_dense(first);
            let end = rest.find(|letter| self::is_dense(letter) != is_dense).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            if is_dense {
                each_pair(part, letters, look);
            } else {
                look(part);
            }
            rest = after;
        }
    }
}

fn each_pair(part: &str, letters: Letters, look: &mut impl FnMut(&str)) {
    let places: Vec<usize> = part.char_indices().map(|(at, _)| at).chain([part.len()]).collect();
    for pair in places.windows(3) {
        look(&part[pair[0]..pair[2]]);
    }
    if letters == Letters::Always || places.len() == 2 {
        for letter in places.windows(2) {
            look(&part[letter[0]..letter[1]]);
        }
    }
}

/// Returns true for a letter of a script that is written without spaces: Thai to Khmer, kana,
/// Chinese characters.
fn is_dense(letter: char) -> bool {
    matches!(letter,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn score(query: &str, value: Value) -> Option<f64> {
        Query::new(query).score("likes-tea", &value)
    }

    #[test]
    fn score_is_the_share_of_words_found() {
        let value = json!({ "drink": "Green TEA", "cups": [3, { "size": "large" }], "hot": true });
        assert_eq!(score("green tea", value.clone()), Some(1.0));
        assert_eq!(score("tea, tea; coffee", value.clone()), Some(0.5));
        assert_eq!(score("cups 3 large true", value.clone()), Some(1.0));
        assert_eq!(score("likes", value.clone()), Some(1.0));
        assert_eq!(score("gree", value.clone()), None);
        assert_eq!(score("?!", value), None);
    }

    #[test]
    fn scripts_without_spaces_are_compared_by_pairs() {
        let value = json!("\u{5979}\u{559c}\u{6b22}\u{7eff}\u{8336}A1");
        assert_eq!(score("\u{7eff}\u{8336}", value.clone()), Some(1.0));
        assert_eq!(score("\u{8336}", value.clone()), Some(1.0));
        assert_eq!(score("\u{559c}\u{6b22}\u{9152}", value.clone()), Some(0.5));
        assert_eq!(score("\u{8336}\u{7eff}", value.clone()), None);
        assert_eq!(score("a1", value), Some(1.0));
    }

    proptest! {
        #[test]
        fn text_contains_all_of_its_own_words(text in "\\PC{0,40}") {
            let query = Query::new(&text);
            let all = (!query.0.is_empty()).then_some(1.0);
            prop_assert_eq!(query.score("", &json!({ "text": text })), all);
        }
    }
}
