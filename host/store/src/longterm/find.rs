//! Which documents fit a search, how well, and in which order they are answered.

use std::cmp::Ordering;

use serde_json::{Number, Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_run::limit::{MEMORY_ANSWER_BYTES, MEMORY_SCANNED, MEMORY_SCANNED_BYTES};
use wattle_run::ports::memory::{Compare, Condition, Item, Search};

use crate::longterm::path;
use crate::longterm::record::{Place, Record};
use crate::longterm::words::Query;

/// Takes documents in any order and keeps those that a search answers with.
pub(crate) struct Finder<'s> {
    search: &'s Search,
    query: Option<Query>,
    now_ms: i64,
    /// The best of those looked at, with some more until they are cut.
    found: Vec<Found>,
    budget: Budget,
}

/// A document that fits.
struct Found {
    rank: Rank,
    record: Record,
    value: Value,
}

/// What the order of documents depends on; the best is the least.
struct Rank {
    score: Option<f64>,
    updated_ms: i64,
    place: Place,
}

impl Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let score = |rank: &Self| rank.score.unwrap_or(0.0);
        score(other)
            .total_cmp(&score(self))
            .then_with(|| other.updated_ms.cmp(&self.updated_ms))
            .then_with(|| self.place.cmp(&other.place))
    }
}

/// What a search answers with.
pub(crate) struct Answer {
    /// The documents.
    pub items: Vec<Item>,
    /// Those of them that live longer since they were found.
    pub refreshed: Vec<Place>,
}

impl<'s> Finder<'s> {
    /// Before any document.
    pub(crate) fn new(search: &'s Search, now_ms: i64) -> Self {
        let query = search.query.as_deref().map(Query::new);
        Self { search, query, now_ms, found: Vec::new(), budget: Budget::default() }
    }

    /// Looks at a document under the prefix.
    ///
    /// # Errors
    ///
    /// `limit` if it is one too many.
    pub(crate) fn offer(&mut self, place: Place, record: Record) -> Result<(), Failure> {
        if !record.is_alive(self.now_ms) {
            return Ok(());
        }
        self.budget.count(record.document.len(), &self.search.prefix)?;
        let value = record.value()?;
        if !self.search.filter.iter().all(|condition| holds(condition, &value)) {
            return Ok(());
        }
        let score = match &self.query {
            None => None,
            Some(query) => match query.score(&place.1, &value) {
                None => return Ok(()),
                score => score,
            },
        };
        let rank = Rank { score, updated_ms: record.updated_ms, place };
        self.found.push(Found { rank, record, value });
        if self.found.len() >= 2 * self.wanted().max(1) {
            self.cut();
        }
        Ok(())
    }

    fn wanted(&self) -> usize {
        // More than are looked at are never found.
        self.search.offset.saturating_add(self.search.limit).min(MEMORY_SCANNED)
    }

    fn cut(&mut self) {
        self.found.sort_by(|one, other| one.rank.cmp(&other.rank));
        self.found.truncate(self.wanted());
    }

    /// The page that was asked for.
    ///
    /// # Errors
    ///
    /// `limit` if it is too large to be handed over.
    pub(crate) fn finish(mut self) -> Result<Answer, Failure> {
        self.cut();
        let page = self.found.into_iter().skip(self.search.offset).take(self.search.limit);
        let (mut items, mut refreshed, mut bytes) = (Vec::new(), Vec::new(), 0);
        for Found { rank, record, value } in page {
            bytes += record.document.len();
            if bytes > MEMORY_ANSWER_BYTES {
                return Err(too_large(items.len()));
            }
            let (path, key) = rank.place;
            items.push(Item {
                namespace: path::decode(&path)?,
                key: key.clone(),
                value,
                created_ms: record.created_ms,
                updated_ms: record.updated_ms,
                score: rank.score,
            });
            if !self.search.peek && record.refreshed(self.now_ms).is_some() {
                refreshed.push((path, key));
            }
        }
        Ok(Answer { items, refreshed })
    }
}

fn too_large(fitting: usize) -> Failure {
    let message = format!(
        "the documents found are larger than {MEMORY_ANSWER_BYTES} bytes; ask for at most {} of \
         them at once",
        fitting.max(1)
    );
    Failure::new(code::LIMIT, message).with_details(json!({ "limit": "memory_answer_bytes" }))
}

/// What has been looked at for one answer.
#[derive(Default)]
pub(crate) struct Budget {
    documents: usize,
    bytes: usize,
}

impl Budget {
    /// Counts a document.
    ///
    /// # Errors
    ///
    /// `limit` if it is one too many.
    pub(crate) fn count(&mut self, bytes: usize, prefix: &[String]) -> Result<(), Failure> {
        self.documents += 1;
        self.bytes += bytes;
        if self.documents <= MEMORY_SCANNED && self.bytes <= MEMORY_SCANNED_BYTES {
            return Ok(());
        }
        let message = format!(
            "there is too much under the namespace `{}` to look through: more than \
             {MEMORY_SCANNED} documents or {MEMORY_SCANNED_BYTES} bytes; ask for a longer prefix",
            prefix.join("/")
        );
        Err(Failure::new(code::LIMIT, message).with_details(json!({ "limit": "memory_scanned" })))
    }
}

/// Whether a document fits a condition.
fn holds(condition: &Condition, document: &Value) -> bool {
    let Condition { field, compare, value } = condition;
    let found = document.as_object().and_then(|fields| fields.get(field)).unwrap_or(&Value::Null);
    match compare {
        Compare::Eq => is_same(found, value),
        Compare::Ne => !is_same(found, value),
        Compare::Gt => order(found, value) == Some(Ordering::Greater),
        Compare::Gte => matches!(order(found, value), Some(Ordering::Greater | Ordering::Equal)),
        Compare::Lt => order(found, value) == Some(Ordering::Less),
        Compare::Lte => matches!(order(found, value), Some(Ordering::Less | Ordering::Equal)),
    }
}

/// Equality in which `1` and `1.0` are one number, and the order of fields says nothing.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            order_numbers(one, other) == Some(Ordering::Equal)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has = |(name, value): (&String, &Value)| {
                other.get(name).is_some_and(|other| is_same(value, other))
            };
            one.len() == other.len() && one.iter().all(has)
        }
        (one, other) => one == other,
    }
}

fn order(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => order_numbers(one, other),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

/// Whole numbers are compared exactly, others as floats.
fn order_numbers(one: &Number, other: &Number) -> Option<Ordering> {
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
