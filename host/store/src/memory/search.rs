//! Filters, ranks and pages the documents of a search.

use std::cmp::Ordering;

use serde_json::{Number, Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_run::limit::{MEMORY_ANSWER_BYTES, MEMORY_SCANNED, MEMORY_SCANNED_BYTES};
use wattle_run::ports::memory::{Compare, Condition, Item, MemorySearch};

use crate::memory::document::{DocumentKey, StoredDocument};
use crate::memory::path;
use crate::memory::tokenize::QueryTerms;

/// Collects the documents that a search returns, from documents in any order.
pub(crate) struct SearchCollector<'s> {
    search: &'s MemorySearch,
    query: Option<QueryTerms>,
    now_ms: i64,
    /// The best matches so far. Holds up to twice as many matches as the search needs, and then
    /// drops the worse half.
    hits: Vec<Hit>,
    budget: ScanBudget,
}

/// A document that matches.
struct Hit {
    rank: HitOrder,
    stored: StoredDocument,
    value: Value,
}

/// The sort key of a match. The best match has the least key.
struct HitOrder {
    score: Option<f64>,
    updated_ms: i64,
    doc_key: DocumentKey,
}

impl HitOrder {
    fn cmp(&self, other: &Self) -> Ordering {
        let score = |rank: &Self| rank.score.unwrap_or(0.0);
        score(other)
            .total_cmp(&score(self))
            .then_with(|| other.updated_ms.cmp(&self.updated_ms))
            .then_with(|| self.doc_key.cmp(&other.doc_key))
    }
}

/// The result of a search.
pub(crate) struct SearchPage {
    /// The documents of the page.
    pub items: Vec<Item>,
    /// Documents of the page whose sliding expiry the search extends.
    pub refreshed: Vec<DocumentKey>,
}

impl<'s> SearchCollector<'s> {
    /// Creates a collector without documents.
    pub(crate) fn new(search: &'s MemorySearch, now_ms: i64) -> Self {
        let query = search.query.as_deref().map(QueryTerms::new);
        Self { search, query, now_ms, hits: Vec::new(), budget: ScanBudget::default() }
    }

    /// Adds a document under the prefix if it matches.
    ///
    /// # Errors
    ///
    /// `limit` if the search reads too many documents or bytes, `broken` if the document is
    /// damaged.
    pub(crate) fn collect(
        &mut self,
        doc_key: DocumentKey,
        stored: StoredDocument,
    ) -> Result<(), Failure> {
        if !stored.is_alive(self.now_ms) {
            return Ok(());
        }
        self.budget.count(stored.document.len(), &self.search.prefix)?;
        let value = stored.value()?;
        if !self.search.filter.iter().all(|condition| matches(condition, &value)) {
            return Ok(());
        }
        let score = match &self.query {
            None => None,
            Some(query) => match query.score(&doc_key.1, &value) {
                None => return Ok(()),
                score => score,
            },
        };
        let rank = HitOrder { score, updated_ms: stored.updated_ms, doc_key };
        self.hits.push(Hit { rank, stored, value });
        if self.hits.len() >= 2 * self.max_hits().max(1) {
            self.keep_best();
        }
        Ok(())
    }

    fn max_hits(&self) -> usize {
        // A search reads at most `MEMORY_SCANNED` documents, so it cannot have more matches.
        self.search.offset.saturating_add(self.search.limit).min(MEMORY_SCANNED)
    }

    fn keep_best(&mut self) {
        self.hits.sort_by(|one, other| one.rank.cmp(&other.rank));
        self.hits.truncate(self.max_hits());
    }

    /// Returns the requested page.
    ///
    /// # Errors
    ///
    /// `limit` if the page has more than `MEMORY_ANSWER_BYTES`, `broken` if a document is damaged.
    pub(crate) fn finish(mut self) -> Result<SearchPage, Failure> {
        self.keep_best();
        let page = self.hits.into_iter().skip(self.search.offset).take(self.search.limit);
        let (mut items, mut refreshed, mut bytes) = (Vec::new(), Vec::new(), 0);
        for Hit { rank, stored, value } in page {
            bytes += stored.document.len();
            if bytes > MEMORY_ANSWER_BYTES {
                return Err(too_large(items.len()));
            }
            let (path, key) = rank.doc_key;
            items.push(Item {
                namespace: path::decode(&path)?,
                key: key.clone(),
                value,
                created_ms: stored.created_ms,
                updated_ms: stored.updated_ms,
                score: rank.score,
            });
            if !self.search.peek && stored.refreshed_expiry(self.now_ms).is_some() {
                refreshed.push((path, key));
            }
        }
        Ok(SearchPage { items, refreshed })
    }
}

fn too_large(fitting: usize) -> Failure {
    let message = format!(
        "the documents found are larger than {MEMORY_ANSWER_BYTES} bytes; request at most {} of \
         them at once",
        fitting.max(1)
    );
    Failure::new(code::LIMIT, message).with_details(json!({ "limit": "memory_answer_bytes" }))
}

/// The documents and bytes that one query has read.
#[derive(Default)]
pub(crate) struct ScanBudget {
    documents: usize,
    bytes: usize,
}

impl ScanBudget {
    /// Counts a document that the query reads.
    ///
    /// # Errors
    ///
    /// `limit` if the query reads too many documents or bytes.
    pub(crate) fn count(&mut self, bytes: usize, prefix: &[String]) -> Result<(), Failure> {
        self.documents += 1;
        self.bytes += bytes;
        if self.documents <= MEMORY_SCANNED && self.bytes <= MEMORY_SCANNED_BYTES {
            return Ok(());
        }
        let message = format!(
            "a query under the namespace `{}` would read more than \
             {MEMORY_SCANNED} documents or {MEMORY_SCANNED_BYTES} bytes; use a longer prefix",
            prefix.join("/")
        );
        Err(Failure::new(code::LIMIT, message).with_details(json!({ "limit": "memory_scanned" })))
    }
}

/// Returns true if a document matches a condition.
fn matches(condition: &Condition, document: &Value) -> bool {
    let Condition { field, compare, value } = condition;
    let found = document.as_object().and_then(|fields| fields.get(field)).unwrap_or(&Value::Null);
    match compare {
        Compare::Eq => json_eq(found, value),
        Compare::Ne => !json_eq(found, value),
        Compare::Gt => json_cmp(found, value) == Some(Ordering::Greater),
        Compare::Gte => matches!(json_cmp(found, value), Some(Ordering::Greater | Ordering::Equal)),
        Compare::Lt => json_cmp(found, value) == Some(Ordering::Less),
        Compare::Lte => matches!(json_cmp(found, value), Some(Ordering::Less | Ordering::Equal)),
    }
}

/// Compares two JSON values. `1` and `1.0` are equal, and the order of fields does not matter.
fn json_eq(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            cmp_numbers(one, other) == Some(Ordering::Equal)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| json_eq(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, value): (&String, &Value)| {
                other.get(name).is_some_and(|other| json_eq(value, other))
            };
            one.len() == other.len() && one.iter().all(has)
        }
        (one, other) => one == other,
    }
}

fn json_cmp(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => cmp_numbers(one, other),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

/// Compares whole numbers exactly and others as floats.
fn cmp_numbers(one: &Number, other: &Number) -> Option<Ordering> {
    let whole = |number: &Number| {
        number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
    };
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

#[cfg(test)]
mod tests;
