//! Fields that somebody may have meant by a name that is not there.

use std::collections::BTreeSet;

use crate::knowledge::{Column, Knowledge, Table};
use crate::state::FieldCandidate;

/// Candidates of one name: more would not help a model to choose.
const CANDIDATES: usize = 12;

/// Likeness from which a field counts as a candidate, from 0 to 1.
const ALIKE: f64 = 0.34;

/// A like field of the very table that was named comes before all others.
const SAME_TABLE: f64 = 1.0;

/// Candidates for names of fields, given as `table.field` or as the field alone.
pub(crate) fn for_fields(missing: &[String], knowledge: &Knowledge) -> Vec<FieldCandidate> {
    missing.iter().map(|name| candidate(name, for_field(name, knowledge))).collect()
}

/// Candidates for names of tables: the fields of those that are called alike.
pub(crate) fn for_tables(missing: &[String], knowledge: &Knowledge) -> Vec<FieldCandidate> {
    let fields_of = |name: &String| {
        let bare = name.rsplit('.').next().unwrap_or(name);
        let tables = knowledge.tables.iter().map(|table| (likeness_of_table(bare, table), table));
        let mut tables: Vec<_> = tables.filter(|(likeness, _)| *likeness >= ALIKE).collect();
        tables.sort_by(|one, two| two.0.total_cmp(&one.0));
        let fields = tables.iter().flat_map(|(_, table)| fields(table));
        candidate(name, fields.take(CANDIDATES).collect())
    };
    missing.iter().map(fields_of).collect()
}

fn candidate(missing: &str, candidates: Vec<String>) -> FieldCandidate {
    FieldCandidate { missing: missing.to_owned(), candidates }
}

fn for_field(name: &str, knowledge: &Knowledge) -> Vec<String> {
    let (table, field) = match name.rsplit_once('.') {
        Some((table, field)) => (knowledge.table(table), field),
        None => (None, name),
    };
    let own = table.map_or(field, |table| own_words(field, table));
    let all = knowledge.tables.iter().flat_map(|known| {
        let bonus = if table.is_some_and(|it| it.name == known.name) { SAME_TABLE } else { 0.0 };
        known.columns.iter().map(move |column| (known, column, bonus))
    });
    let mut found: Vec<(f64, String)> = all
        .map(|(table, column, bonus)| {
            (likeness_of_column(own, table, column), bonus, table, column)
        })
        .filter(|(likeness, ..)| *likeness >= ALIKE)
        .map(|(likeness, bonus, table, column)| (likeness + bonus, named(table, column)))
        .collect();
    found.sort_by(|one, two| two.0.total_cmp(&one.0));
    found.into_iter().map(|(_, name)| name).take(CANDIDATES).collect()
}

fn fields(table: &Table) -> impl Iterator<Item = String> {
    table.columns.iter().map(|column| named(table, column))
}

fn named(table: &Table, column: &Column) -> String {
    format!("{}.{}", table.name, column.name)
}

fn likeness_of_column(name: &str, table: &Table, column: &Column) -> f64 {
    let aliases = column.description.aliases.iter().map(|alias| likeness(name, alias));
    aliases.fold(likeness(name, own_words(&column.name, table)), f64::max)
}

/// The name without the name of its table in front, which says nothing: `order_no` in `orders`.
fn own_words<'a>(name: &'a str, table: &Table) -> &'a str {
    let singular = table.name.strip_suffix('s').unwrap_or(&table.name);
    let rest = name.strip_prefix(singular).and_then(|rest| rest.strip_prefix('_'));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(name)
}

fn likeness_of_table(name: &str, table: &Table) -> f64 {
    let aliases = table.description.aliases.iter().map(|alias| likeness(name, alias));
    aliases.fold(likeness(name, &table.name), f64::max)
}

/// Pairs of neighboring characters that two names share (Dice), from 0 to 1.
fn likeness(one: &str, two: &str) -> f64 {
    let (one, two) = (one.to_lowercase(), two.to_lowercase());
    if one == two {
        return 1.0;
    }
    let (one, two) = (pairs(&one), pairs(&two));
    let shared = one.intersection(&two).count();
    let all = one.len() + two.len();
    if all == 0 { 0.0 } else { 2.0 * shared as f64 / all as f64 }
}

fn pairs(name: &str) -> BTreeSet<(char, char)> {
    name.chars().zip(name.chars().skip(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::{for_fields, for_tables};
    use crate::testing::knowledge;

    fn fields(name: &str) -> Vec<String> {
        for_fields(&[name.to_owned()], &knowledge()).remove(0).candidates
    }

    #[test]
    fn the_likest_field_of_the_same_table_comes_first() {
        let found = fields("orders.order_amount");
        assert_eq!(found[0], "orders.total_amount", "{found:?}");
        assert!(found.contains(&"order_items.amount".to_owned()), "{found:?}");
        assert_eq!(fields("orders.customer")[0], "orders.customer_id");
        assert_eq!(fields("town.cities")[0], "customers.city");
    }

    // What is put in the place of a field without a word in common would answer another question.
    #[test]
    fn without_a_like_name_there_is_no_candidate() {
        assert!(fields("customers.password").is_empty());
        assert!(fields("zzz").is_empty());
    }

    #[test]
    fn tables_are_found_too() {
        let found = for_tables(&["shop.order".to_owned()], &knowledge()).remove(0);
        assert_eq!(found.missing, "shop.order");
        assert_eq!(found.candidates[0], "orders.id");
    }
}
