//! Similarity of texts to a query: common words and common bigrams.

use std::collections::BTreeSet;

use serde_json::Value;

/// Minimum score of a result.
const LEAST: f64 = 0.12;

/// Default number of results.
const TOP_N: usize = 10;

/// The parameters of a search.
#[derive(Debug)]
pub(super) struct SearchParams {
    query: String,
    top_n: usize,
    /// Maximum distance to the best score; 0 for no maximum.
    score_gap: f64,
    /// Maximum distance to the best score, as a fraction of the best score; 0 for no maximum.
    relative_diff: f64,
    w_sparse: f64,
    w_dense: f64,
}

impl SearchParams {
    /// Parses the arguments of a search.
    pub(super) fn read(arguments: &Value) -> Result<Self, String> {
        let query = arguments["query"].as_str().ok_or("`query` is missing")?;
        let number = |name: &str, default: f64| arguments[name].as_f64().unwrap_or(default);
        Ok(Self {
            query: query.to_lowercase(),
            top_n: arguments["top_n"].as_u64().map_or(TOP_N, |top| top as usize),
            score_gap: number("score_gap", 0.0),
            relative_diff: number("relative_diff", 0.0),
            w_sparse: number("w_sparse", 0.5),
            w_dense: number("w_dense", 0.5),
        })
    }

    /// Returns the matching things, best first.
    pub(super) fn best<'a, T>(
        &self,
        things: &'a [T],
        texts: impl Fn(&T) -> (&'static str, &'static str),
    ) -> Vec<(f64, &'a T)> {
        let scored = things.iter().map(|thing| (self.score(texts(thing)), thing));
        let mut fitting: Vec<(f64, &T)> = scored.filter(|(score, _)| *score >= LEAST).collect();
        fitting.sort_by(|one, two| two.0.total_cmp(&one.0));
        let best = fitting.first().map_or(0.0, |(score, _)| *score);
        fitting.retain(|(score, _)| {
            (self.score_gap <= 0.0 || best - score <= self.score_gap)
                && (self.relative_diff <= 0.0 || (best - score) / best <= self.relative_diff)
        });
        fitting.truncate(self.top_n);
        fitting
    }

    /// Computes a score. A match of the name counts more than one of the description.
    fn score(&self, (name, description): (&str, &str)) -> f64 {
        let name = name.to_lowercase();
        if self.query.trim().is_empty() {
            return 0.0;
        }
        let named = self.query.contains(&name) || name.contains(&self.query);
        let described = description.to_lowercase().contains(&self.query);
        let sparse = if named { 1.0 } else { f64::from(u8::from(described)) * 0.6 };
        let dense = alike(&self.query, &name).max(alike(&self.query, description) * 0.8);
        let score = self.w_sparse * sparse + self.w_dense * dense;
        (score * 10_000.0).round() / 10_000.0
    }
}

/// Returns the number of common bigrams relative to the shorter text.
fn alike(query: &str, text: &str) -> f64 {
    let (in_query, in_text) = (pairs(query), pairs(text));
    let least = in_query.len().min(in_text.len());
    if least == 0 {
        return 0.0;
    }
    in_query.intersection(&in_text).count() as f64 / least as f64
}

fn pairs(text: &str) -> BTreeSet<(char, char)> {
    let letters: Vec<char> = text.chars().filter(|c| c.is_alphanumeric()).collect();
    letters.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::SearchParams;
    use crate::standin::ontology::classes::ATTRIBUTES;

    fn check(query: &str, expected: &[&str]) {
        let params = SearchParams::read(&json!({"query": query, "top_n": 3})).unwrap();
        let found = params.best(ATTRIBUTES, |known| (known.name, known.description));
        let codes: Vec<&str> = found.iter().map(|(_, known)| known.code).collect();
        assert!(codes.starts_with(expected), "{query}: {found:?}");
        if expected.is_empty() {
            assert!(codes.is_empty(), "{query}: {found:?}");
        }
    }

    #[test]
    fn queries_find_their_attributes() {
        check("订单金额", &["order_amount"]);
        check("订单状态", &["order_status"]);
        check("各区域的客户数量", &["customer_region"]);
        check("火星天气", &[]);
        check("", &[]);
    }

    #[test]
    fn distant_results_are_dropped_on_request() {
        let all = SearchParams::read(&json!({"query": "客户电话", "top_n": 20})).unwrap();
        let near =
            SearchParams::read(&json!({"query": "客户电话", "top_n": 20, "relative_diff": 0.1}));
        let count =
            |params: &SearchParams| params.best(ATTRIBUTES, |a| (a.name, a.description)).len();
        assert!(count(&near.unwrap()) < count(&all));
    }
}
