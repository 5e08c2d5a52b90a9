//! Splits texts into terms, for ranking.
//!
//! A term is a word: a run of letters and digits, in lower case. Texts in scripts that are written
//! without spaces have no such runs. In these texts, every pair of adjacent letters is a term. In
//! documents, every single letter is a term too.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

/// The terms of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueryTerms(HashMap<String, usize>);

impl QueryTerms {
    /// Splits a query into terms.
    pub(crate) fn new(text: &str) -> Self {
        let mut terms = BTreeSet::new();
        for_each_term(text, SingleChars::IfAlone, &mut |term| {
            terms.insert(term.to_owned());
        });
        Self(terms.into_iter().zip(0..).collect())
    }

    /// Returns the share of the terms of the query that a document contains in its key, field names
    /// or values; `None` if the document contains no term of the query.
    pub(crate) fn score(&self, key: &str, value: &Value) -> Option<f64> {
        let mut found = vec![false; self.0.len()];
        let mut visit = |term: &str| {
            if let Some(index) = self.0.get(term) {
                found[*index] = true;
            }
        };
        for_each_term(key, SingleChars::Always, &mut visit);
        for_each_term_in(value, &mut visit);
        let hits = found.iter().filter(|found| **found).count();
        (hits > 0).then(|| hits as f64 / found.len() as f64)
    }
}

/// Calls `visit` for each term of a document. The depth of the recursion is bounded, since deeply
/// nested documents are refused when they are written.
fn for_each_term_in(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::Null => {}
        Value::Bool(flag) => visit(if *flag { "true" } else { "false" }),
        Value::Number(number) => for_each_term(&number.to_string(), SingleChars::Always, visit),
        Value::String(text) => for_each_term(text, SingleChars::Always, visit),
        Value::Array(items) => items.iter().for_each(|item| for_each_term_in(item, visit)),
        Value::Object(fields) => {
            for (name, item) in fields {
                for_each_term(name, SingleChars::Always, visit);
                for_each_term_in(item, visit);
            }
        }
    }
}

/// Whether a single letter of a script without spaces counts as a term.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SingleChars {
    Always,
    IfAlone,
}

/// Calls `visit` for each term of a text.
fn for_each_term(text: &str, single_chars: SingleChars, visit: &mut impl FnMut(&str)) {
    let lower = text.to_lowercase();
    for run in lower.split(|letter: char| !letter.is_alphanumeric()) {
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let is_unspaced = is_unspaced_script(first);
            let end =
                rest.find(|letter| is_unspaced_script(letter) != is_unspaced).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            if is_unspaced {
                for_each_bigram(part, single_chars, visit);
            } else {
                visit(part);
            }
            rest = after;
        }
    }
}

/// Calls `visit` for each pair of adjacent letters, and for single letters if `single_chars`
/// includes them.
fn for_each_bigram(part: &str, single_chars: SingleChars, visit: &mut impl FnMut(&str)) {
    let offsets: Vec<usize> = part.char_indices().map(|(at, _)| at).chain([part.len()]).collect();
    for pair in offsets.windows(3) {
        visit(&part[pair[0]..pair[2]]);
    }
    if single_chars == SingleChars::Always || offsets.len() == 2 {
        for letter in offsets.windows(2) {
            visit(&part[letter[0]..letter[1]]);
        }
    }
}

/// Returns true for a letter of a script that is written without spaces: Thai to Khmer, kana,
/// Chinese characters.
fn is_unspaced_script(letter: char) -> bool {
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
        QueryTerms::new(query).score("likes-tea", &value)
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
    fn texts_without_spaces_are_compared_by_bigrams() {
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
            let query = QueryTerms::new(&text);
            let all = (!query.0.is_empty()).then_some(1.0);
            prop_assert_eq!(query.score("", &json!({ "text": text })), all);
        }
    }
}
