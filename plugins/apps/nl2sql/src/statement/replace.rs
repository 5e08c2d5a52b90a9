//! Replaces missing fields by existing ones in the text of a statement.
//!
//! A replacement changes what is queried, so it must be unambiguous: the name is close to exactly
//! one field of the tables at its position. The model repairs everything else.

use crate::candidate::{self, Closeness};
use crate::knowledge::Knowledge;
use crate::state::{AppliedFieldReplacement, FieldCandidate};
use crate::statement::cut::{is_name_part, offset};
use crate::statement::scope::Missing;

/// Replaces every missing field that has one close candidate. Returns `None` if no field has one.
pub(super) fn replace(
    sql: &str,
    missing: &[Missing],
    candidates: &[FieldCandidate],
    knowledge: &Knowledge,
) -> Option<(String, Vec<AppliedFieldReplacement>)> {
    let mut text = sql.to_owned();
    let mut applied: Vec<AppliedFieldReplacement> = Vec::new();
    // Replacing from the end keeps earlier positions valid.
    let mut places: Vec<&Missing> = missing.iter().collect();
    places.sort_by_key(|it| std::cmp::Reverse(offset(sql, it.span.start)));
    for place in places {
        let Some((written, to)) = choose(place, candidates, knowledge) else { continue };
        let range = offset(sql, place.span.start)..offset(sql, place.span.end);
        let written = match alias(place, &to, sql, missing) {
            Some(alias) => format!("{written} AS {alias}"),
            None => written,
        };
        text.replace_range(range, &written);
        let replacement = AppliedFieldReplacement { from: place.name.clone(), to };
        if !applied.contains(&replacement) {
            applied.insert(0, replacement);
        }
    }
    if applied.is_empty() { None } else { Some((text, applied)) }
}

/// Returns the alias with which a column of a projection keeps its name, because the queries around
/// may use it. Returns `None` if they use the name of the field: then only this position is
/// misspelled.
fn alias(place: &Missing, to: &str, sql: &str, missing: &[Missing]) -> Option<String> {
    let (item, (_, column)) = (place.item.as_ref()?, to.split_once('.')?);
    let is_same = |it: &&Missing| split(&it.name).1.eq_ignore_ascii_case(&item.value);
    let places = missing.iter().filter(is_same).count();
    let is_used = sql.to_lowercase().matches(&item.value.to_lowercase()).count() > places;
    let mut words = sql.split(|it: char| !is_name_part(it));
    let is_known = words.any(|word| word.eq_ignore_ascii_case(column));
    (item.to_string() != column && (is_used || !is_known)).then(|| item.to_string())
}

/// A field that may replace another.
struct Close<'c> {
    /// True for a field of the table that the statement names, or of the only table that it reads.
    is_own: bool,
    closeness: Closeness,
    /// The field as written at that position.
    written: String,
    field: &'c str,
}

/// Returns the new field as written, and its name. Fields of tables that the statement does not
/// read at this position are not considered. Candidates count whatever precedes the same name,
/// because the database may have refused the name without its table.
fn choose(
    missing: &Missing,
    candidates: &[FieldCandidate],
    knowledge: &Knowledge,
) -> Option<(String, String)> {
    let (own, name) = split(&missing.name);
    let same = candidates.iter().filter(|it| split(&it.missing).1.eq_ignore_ascii_case(name));
    let mut fields: Vec<&String> = Vec::new();
    for field in same.flat_map(|it| &it.candidates) {
        if !fields.contains(&field) {
            fields.push(field);
        }
    }
    let close = fields.into_iter().filter_map(|field| {
        let written = missing.written(field)?;
        let (table, column) = knowledge.field(field)?;
        let closeness = candidate::closeness(name, table, column, knowledge)?;
        let is_own = own.is_some_and(|own| own.eq_ignore_ascii_case(&table.name));
        Some(Close { is_own, closeness, written, field: field.as_str() })
    });
    let close: Vec<Close<'_>> = close.collect();
    let first = close.iter().min_by_key(|it| (!it.is_own, it.closeness))?;
    // A rival is equally close, or has exactly the name in another table. The first one is equally
    // close to itself.
    let is_rival = |it: &&Close<'_>| {
        let is_as_close = it.is_own == first.is_own && it.closeness == first.closeness;
        is_as_close || it.closeness == Closeness::Same && first.closeness != Closeness::Same
    };
    if close.iter().filter(is_rival).count() > 1 {
        return None;
    }
    Some((first.written.clone(), first.field.to_owned()))
}

/// Splits a field into its table, if it has one, and its own name.
fn split(field: &str) -> (Option<&str>, &str) {
    field.split_once('.').map_or((None, field), |(table, name)| (Some(table), name))
}
