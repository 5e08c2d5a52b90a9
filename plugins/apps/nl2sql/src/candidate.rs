//! Finds the fields that a missing name may mean.

use std::collections::BTreeSet;

use crate::knowledge::{Column, Knowledge, Table};
use crate::state::FieldCandidate;

/// Maximum number of candidates of one name. More would not help a model to choose.
const CANDIDATES: usize = 12;

/// Minimum similarity of a candidate, from 0 to 1.
const ALIKE: f64 = 0.34;

/// Bonus for candidates of the table in the name, so that they come before all others.
const SAME_TABLE: f64 = 1.0;

/// Minimum length of a word that may have a wrong letter. One letter turns a shorter word into
/// another word too easily.
const SLIP_LETTERS: usize = 4;

/// Prefix that short names of metrics omit.
const TOTAL: &str = "total_";

/// Suffix that short names of foreign keys omit.
const KEY: &str = "_id";

/// How closely a name matches a field that can replace it, the closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Closeness {
    /// The name is that of the field or an alias, apart from the name of the table.
    Same,
    /// Each word has at most one wrong letter, or only the underscores differ.
    Misspelled,
    /// The name omits a part without a meaning of its own: `amount` for `total_amount`, `customer`
    /// for a `customer_id` that references customers.
    Shortened,
}

/// Returns how closely a name matches a field; `None` if a replacement by the field would be a
/// guess.
pub(crate) fn closeness(
    name: &str,
    table: &Table,
    column: &Column,
    knowledge: &Knowledge,
) -> Option<Closeness> {
    let (name, field) = (name.to_lowercase(), column.name.to_lowercase());
    let (own, known) = (own_words(&name, table), own_words(&field, table));
    let is_alias = |alias: &String| {
        let alias = alias.to_lowercase();
        alias == name || alias == own
    };
    if own == known || column.description.aliases.iter().any(is_alias) {
        return Some(Closeness::Same);
    }
    if is_misspelled(own, known) {
        return Some(Closeness::Misspelled);
    }
    let is_total = known.strip_prefix(TOTAL) == Some(own);
    let is_key = field.strip_suffix(KEY) == Some(own) && points_to(table, column, own, knowledge);
    (is_total || is_key).then_some(Closeness::Shortened)
}

/// Returns true if a field is a foreign key to the table with a name, which may be singular.
fn points_to(table: &Table, column: &Column, name: &str, knowledge: &Knowledge) -> bool {
    let from = named(table, column);
    let mut links = knowledge.links.iter().filter(|link| link.from.eq_ignore_ascii_case(&from));
    links.any(|link| {
        let target = link.to.split_once('.').map_or("", |(target, _)| target).to_lowercase();
        target == name || target.strip_suffix('s') == Some(name)
    })
}

/// Returns true if a name is a field's name with misspelled words, or with other underscores.
fn is_misspelled(name: &str, field: &str) -> bool {
    if name.replace('_', "") == field.replace('_', "") {
        return true;
    }
    let (ours, theirs) = (name.split('_'), field.split('_'));
    ours.clone().count() == theirs.clone().count()
        && ours.zip(theirs).all(|(one, two)| one == two || is_slip(one, two))
}

/// Returns true if two words differ by one missing, additional or wrong letter, or by two swapped
/// letters. The first letters must be equal, and words with digits never match, because a first
/// letter or a digit distinguishes names.
fn is_slip(one: &str, two: &str) -> bool {
    let is_word =
        |it: &str| it.len() >= SLIP_LETTERS && it.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_word(one)
        && is_word(two)
        && one.get(..1) == two.get(..1)
        && strsim::osa_distance(one, two) == 1
}

/// Returns the candidates for names of fields, given as `table.field` or as the field alone.
pub(crate) fn for_fields(missing: &[String], knowledge: &Knowledge) -> Vec<FieldCandidate> {
    missing.iter().map(|name| candidate(name, for_field(name, knowledge))).collect()
}

/// Returns the candidates for names of tables: the fields of tables with similar names.
pub(crate) fn for_tables(missing: &[String], knowledge: &Knowledge) -> Vec<FieldCandidate> {
    let fields_of = |name: &String| {
        let bare = name.rsplit('.').next().unwrap_or(name);
        let fields = knowledge.tables.iter().flat_map(|table| {
            let likeness = likeness_of_table(bare, table);
            table.columns.iter().map(move |column| (likeness, table, column))
        });
        let alike = fields.filter(|(likeness, ..)| *likeness >= ALIKE);
        candidate(name, best(alike.collect()))
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
    let found = all
        .map(|(table, column, bonus)| {
            (likeness_of_column(own, table, column), bonus, table, column)
        })
        .filter(|(likeness, ..)| *likeness >= ALIKE)
        .map(|(likeness, bonus, table, column)| (likeness + bonus, table, column));
    best(found.collect())
}

/// Returns the names of the most similar fields, the most similar first.
fn best(mut fields: Vec<(f64, &Table, &Column)>) -> Vec<String> {
    fields.sort_by(|one, two| two.0.total_cmp(&one.0));
    fields.iter().map(|(_, table, column)| named(table, column)).take(CANDIDATES).collect()
}

fn named(table: &Table, column: &Column) -> String {
    format!("{}.{}", table.name, column.name)
}

fn likeness_of_column(name: &str, table: &Table, column: &Column) -> f64 {
    let aliases = column.description.aliases.iter().map(|alias| likeness(name, alias));
    aliases.fold(likeness(name, own_words(&column.name, table)), f64::max)
}

/// Removes the table's name from the front of a name, where it has no meaning: `order_no` in
/// `orders`.
fn own_words<'a>(name: &'a str, table: &Table) -> &'a str {
    let singular = table.name.strip_suffix('s').unwrap_or(&table.name);
    let rest = name.strip_prefix(singular).and_then(|rest| rest.strip_prefix('_'));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(name)
}

fn likeness_of_table(name: &str, table: &Table) -> f64 {
    let aliases = table.description.aliases.iter().map(|alias| likeness(name, alias));
    aliases.fold(likeness(name, &table.name), f64::max)
}

/// Returns the share of common pairs of neighboring characters (Dice coefficient), from 0 to 1.
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
    // Unlike `collect`, this needs no code that sorts pairs.
    let mut pairs = BTreeSet::new();
    pairs.extend(name.chars().zip(name.chars().skip(1)));
    pairs
}

#[cfg(test)]
mod tests {
    use super::{Closeness, closeness, for_fields, for_tables};
    use crate::testing::knowledge;

    fn fields(name: &str) -> Vec<String> {
        for_fields(&[name.to_owned()], &knowledge()).remove(0).candidates
    }

    #[test]
    fn most_similar_field_of_the_same_table_comes_first() {
        let found = fields("orders.order_amount");
        assert_eq!(found[0], "orders.total_amount", "{found:?}");
        assert!(found.contains(&"order_items.amount".to_owned()), "{found:?}");
        assert_eq!(fields("orders.customer")[0], "orders.customer_id");
        assert_eq!(fields("town.cities")[0], "customers.city");
    }

    // A field without a word in common would answer another question.
    #[test]
    fn dissimilar_names_have_no_candidates() {
        assert!(fields("customers.password").is_empty());
        assert!(fields("zzz").is_empty());
    }

    #[test]
    fn similar_tables_are_found() {
        let found = for_tables(&["shop.order".to_owned()], &knowledge()).remove(0);
        assert_eq!(found.missing, "shop.order");
        assert_eq!(found.candidates[0], "orders.id");
    }

    #[test]
    fn only_unambiguous_names_are_close() {
        let mut knowledge = knowledge();
        knowledge.tables[1].columns[4].description.aliases.push("金额".to_owned());
        let close = |name: &str, field: &str| {
            let (table, column) = knowledge.field(field).unwrap();
            closeness(name, table, column, &knowledge)
        };
        for (name, field, expected) in [
            ("order_status", "orders.status", Some(Closeness::Same)),
            ("Customer_Name", "customers.name", Some(Closeness::Same)),
            ("金额", "orders.total_amount", Some(Closeness::Same)),
            ("total_amout", "orders.total_amount", Some(Closeness::Misspelled)),
            ("total_amonut", "orders.total_amount", Some(Closeness::Misspelled)),
            ("totalAmount", "orders.total_amount", Some(Closeness::Misspelled)),
            ("stauts", "orders.status", Some(Closeness::Misspelled)),
            ("order_amount", "orders.total_amount", Some(Closeness::Shortened)),
            ("customer", "orders.customer_id", Some(Closeness::Shortened)),
            ("completed", "orders.status", None),
            ("is_deletd", "customers.is_deleted", Some(Closeness::Misspelled)),
            ("completed", "customers.is_deleted", None),
            ("paid", "orders.total_amount", None),
            ("refund_amount", "orders.total_amount", None),
            ("unit_amount", "order_items.amount", None),
            ("customer_name", "orders.customer_id", None),
            ("order", "order_items.order_id", None),
            ("town", "customers.city", None),
            ("state", "orders.status", None),
        ] {
            assert_eq!(close(name, field), expected, "{name} {field}");
        }
    }

    #[test]
    fn words_with_different_meanings_are_not_misspellings() {
        let mut knowledge = knowledge();
        for (name, field) in [
            ("min_price", "max_price"),
            ("address1", "address2"),
            ("hired_at", "fired_at"),
            ("internal_no", "external_no"),
            ("created_at", "updated_at"),
            ("credit", "debit"),
            ("金币数量", "金额数量"),
        ] {
            knowledge.tables[1].columns[4].name = field.to_owned();
            let (table, column) = knowledge.field(&format!("orders.{field}")).unwrap();
            assert_eq!(closeness(name, table, column, &knowledge), None, "{name} {field}");
        }
    }
}
