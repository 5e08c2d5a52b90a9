//! Putting fields that are there in the place of fields that are not, in the text as it stands.

use crate::state::{AppliedFieldReplacement, FieldCandidate};
use crate::statement::cut::offset;
use crate::statement::scope::Missing;

/// What stands at the end of a field that names another row.
const ID_ENDING: &str = "_id";

/// Replaces every missing field that has a candidate; nothing if none has one.
pub(super) fn replace(
    sql: &str,
    missing: &[Missing],
    candidates: &[FieldCandidate],
) -> Option<(String, Vec<AppliedFieldReplacement>)> {
    let mut text = sql.to_owned();
    let mut applied: Vec<AppliedFieldReplacement> = Vec::new();
    // From the end, so that places before stay where they are.
    let mut places: Vec<&Missing> = missing.iter().collect();
    places.sort_by_key(|it| std::cmp::Reverse(offset(sql, it.span.start)));
    for place in places {
        let Some((written, to)) = choose(place, candidates) else { continue };
        let range = offset(sql, place.span.start)..offset(sql, place.span.end);
        text.replace_range(range, &written);
        let replacement = AppliedFieldReplacement { from: place.name.clone(), to };
        if !applied.contains(&replacement) {
            applied.insert(0, replacement);
        }
    }
    if applied.is_empty() { None } else { Some((text, applied)) }
}

/// How the new field is written, and its name. A field of a table that the statement does not
/// read at this place would be no help.
fn choose(missing: &Missing, candidates: &[FieldCandidate]) -> Option<(String, String)> {
    let found = candidates.iter().find(|it| it.missing.eq_ignore_ascii_case(&missing.name))?;
    let table = missing.name.split_once('.').map(|(table, _)| table);
    let is_same_table = |field: &str| {
        let own = field.split_once('.').map(|(table, _)| table);
        own.zip(table).is_some_and(|(own, table)| own.eq_ignore_ascii_case(table))
    };
    let reachable: Vec<(String, &String)> = found
        .candidates
        .iter()
        .filter_map(|field| Some((missing.written(field)?, field)))
        .collect();
    let chosen = reachable
        .iter()
        .find(|(_, field)| is_same_table(field) && field.ends_with(ID_ENDING))
        .or_else(|| reachable.iter().find(|(_, field)| is_same_table(field)))
        .or_else(|| reachable.first())?;
    Some((chosen.0.clone(), chosen.1.clone()))
}
