//! Maps the entities of a question to fields. Models write imprecise mappings for correct
//! statements, so the fields and conditions of the checked statement correct a mapping. Only an
//! entity that the statement leaves out is refused.
//!
//! Mappings explain a statement to people. `statement` alone decides what a statement may read.

use crate::candidate;
use crate::knowledge::Knowledge;
use crate::state::{EntityMapping, TaskEntity};
use crate::statement::{Checked, Comparison};

/// Prefix of the text of a refusal.
const REFUSED: &str = "sql_generation_entity_mapping: ";

/// Separates the reason of a refusal from the statement. A failed generation has no field for its
/// statement, and the next attempt needs it.
const STATEMENT: &str = "\n上一条 SQL：\n";

/// Reason of a mapping that is derived from the statement.
const DERIVED: &str = "由 SQL 的条件得出";

/// Minimum number of characters of a value that may be part of another: `北京` in `北京市`.
const PART_CHARACTERS: usize = 2;

/// Maximum number of fields that a refusal proposes.
const PROPOSED: usize = 5;

/// Returns the mappings of a statement, each with a field that the statement uses. Returns a text
/// that says what to change if the statement leaves out an entity of the question.
pub(crate) fn correct(
    given: Vec<EntityMapping>,
    entities: &[TaskEntity],
    checked: &Checked,
    knowledge: &Knowledge,
) -> Result<Vec<EntityMapping>, String> {
    let reader = Reader { checked, knowledge };
    let (mut mappings, mut complaints) = reader.corrected(given, entities);
    reader.derive(entities, &mut mappings);
    if complaints.is_empty() && mappings.is_empty() && !entities.is_empty() {
        complaints.push(reader.none(entities));
    }
    if complaints.is_empty() {
        return Ok(mappings);
    }
    Err(format!("{REFUSED}{}{STATEMENT}{}", complaints.join("；"), checked.sql))
}

/// Splits the text of a refusal into its reason and the statement.
pub(crate) fn split_refusal(error: &str) -> (&str, Option<&str>) {
    match error.split_once(STATEMENT) {
        Some((reason, sql)) if error.starts_with(REFUSED) => (reason, Some(sql)),
        _ => (error, None),
    }
}

/// Reads mappings by what the checked statement uses.
struct Reader<'a> {
    checked: &'a Checked,
    knowledge: &'a Knowledge,
}

impl Reader<'_> {
    /// Corrects the fields of the model's mappings. Also returns a complaint for each mapping of an
    /// entity of the question that the statement leaves out.
    fn corrected(
        &self,
        given: Vec<EntityMapping>,
        entities: &[TaskEntity],
    ) -> (Vec<EntityMapping>, Vec<String>) {
        let (mut corrected, mut complaints) = (Vec::new(), Vec::new());
        for mapping in given {
            let field = self.field(&mapping.field).or_else(|| self.compared(&mapping.value));
            match field {
                Some(field) => corrected.push(EntityMapping { field, ..mapping }),
                None if entities.iter().any(|it| is_alike(&it.value, &mapping.value)) => {
                    complaints.push(self.complaint(&mapping));
                }
                // The task does not name it: it may be a metric.
                None => {}
            }
        }
        (corrected, complaints)
    }

    /// Adds a mapping for each entity without one whose value the statement compares with a field.
    fn derive(&self, entities: &[TaskEntity], mappings: &mut Vec<EntityMapping>) {
        for entity in entities {
            if mappings.iter().any(|it| is_alike(&it.value, &entity.value)) {
                continue;
            }
            if let Some(field) = self.compared(&entity.value) {
                let (kind, value) = (entity.kind.clone(), entity.value.clone());
                mappings.push(EntityMapping { kind, value, field, reason: DERIVED.to_owned() });
            }
        }
    }

    /// Returns the field of the statement that a name means. The name may be in another case, in
    /// quotes, qualified by an alias, a CTE or a schema. The name of a replaced field means its
    /// replacement.
    fn field(&self, written: &str) -> Option<String> {
        let bare = unquoted(written);
        let mut replaced = self.checked.replacements.iter();
        if let Some(replacement) = replaced.rfind(|it| it.from.eq_ignore_ascii_case(&bare)) {
            return Some(replacement.to.clone());
        }
        let mut parts = bare.rsplit('.');
        let column = parts.next()?;
        let relation = parts.next();
        if let Some(relation) = relation {
            let table = self.checked.aliases.get(&relation.to_ascii_lowercase());
            let name = format!("{}.{column}", table.map_or(relation, String::as_str));
            if let Some((table, column)) = self.knowledge.field(&name) {
                return self.used(format!("{}.{}", table.name, column.name));
            }
        }
        self.only(column).or_else(|| self.used(self.knowledge.resolve(&bare)?))
    }

    fn used(&self, field: String) -> Option<String> {
        self.checked.fields.contains(&field).then_some(field)
    }

    /// Returns the only field of the statement with this column.
    fn only(&self, column: &str) -> Option<String> {
        let is_called = |field: &&String| {
            field.split_once('.').is_some_and(|(_, name)| name.eq_ignore_ascii_case(column))
        };
        let mut found = self.checked.fields.iter().filter(is_called);
        let first = found.next()?;
        found.next().is_none().then(|| first.clone())
    }

    /// Returns the field that the statement compares with a value.
    fn compared(&self, value: &str) -> Option<String> {
        let fits = |it: &&Comparison| is_alike(it.value.trim_matches('%'), value);
        let mut found = self.checked.comparisons.iter().filter(fits);
        found.find_map(|it| self.field(&it.column))
    }

    fn complaint(&self, mapping: &EntityMapping) -> String {
        let EntityMapping { kind, value, field, .. } = mapping;
        let bare = unquoted(field);
        let (reason, change) = match self.knowledge.resolve(&bare) {
            Some(known) => (
                format!("字段 {known} 没有出现在 SQL 中"),
                format!("请在 SQL 中加上条件（例如 {known} = '{value}'）"),
            ),
            None => (
                format!("字段 {field} 不在白名单中{}", self.proposed(&bare)),
                format!("请在 SQL 中用白名单里合适的字段加上“{value}”的条件"),
            ),
        };
        format!(
            "实体“{value}”（{kind}）没有落实：entity_mappings 写的{reason}，SQL 也没有与“{value}”比较。\
             {change}，并在 entity_mappings 里写这个字段"
        )
    }

    /// Returns fields with similar names, in parentheses.
    fn proposed(&self, field: &str) -> String {
        let found = candidate::for_fields(&[field.to_owned()], self.knowledge);
        let fields: Vec<String> =
            found.into_iter().flat_map(|it| it.candidates).take(PROPOSED).collect();
        if fields.is_empty() {
            String::new()
        } else {
            format!("（可能是 {}）", fields.join("、"))
        }
    }

    fn none(&self, entities: &[TaskEntity]) -> String {
        let named: Vec<String> =
            entities.iter().map(|it| format!("“{}”（{}）", it.value, it.kind)).collect();
        let fields: Vec<&str> =
            self.checked.fields.iter().take(PROPOSED).map(String::as_str).collect();
        format!(
            "缺少实体与字段的对应关系：请在 entity_mappings 里为{}各写一条，field 是 SQL 里用来限定它的字段（SQL 现在用到的字段：{}）；\
             SQL 没有限定它时，先加上条件",
            named.join("、"),
            fields.join("、")
        )
    }
}

/// Removes the quotes of all dialects: `"customers"."city"`, `[customers].[city]`.
fn unquoted(field: &str) -> String {
    let is_quote = |it: char| matches!(it, '"' | '`' | '\'' | '[' | ']') || it.is_whitespace();
    field.chars().filter(|it| !is_quote(*it)).collect()
}

/// Returns true if two texts name the same value: they are equal, or one is part of the other.
fn is_alike(one: &str, two: &str) -> bool {
    let (one, two) = (plain(one), plain(two));
    if one == two {
        return !one.is_empty();
    }
    if let (Ok(one), Ok(two)) = (one.parse::<f64>(), two.parse::<f64>()) {
        return one.total_cmp(&two).is_eq();
    }
    let is_part =
        |short: &str, long: &str| short.chars().count() >= PART_CHARACTERS && long.contains(short);
    is_part(&one, &two) || is_part(&two, &one)
}

/// Returns a value in lower case, without quotes, spaces and punctuation around it.
fn plain(value: &str) -> String {
    let is_edge = |it: char| !it.is_alphanumeric();
    value.trim_matches(is_edge).to_lowercase()
}

#[cfg(test)]
mod tests {
    use wattle_plugin::sql::Dialect;

    use super::{correct, split_refusal};
    use crate::state::{EntityMapping, FieldCandidate, TaskEntity};
    use crate::statement::check;
    use crate::testing::knowledge;

    const SQL: &str = "WITH base AS (SELECT o.id AS id, c.city AS city FROM orders AS o \
                       JOIN customers c ON c.id = o.customer_id WHERE c.city LIKE '%北京%' \
                       AND o.status IN ('paid', 'completed') AND o.total_amount > 5000) \
                       SELECT COUNT(id) AS order_count FROM base";

    fn entities(values: &[&str]) -> Vec<TaskEntity> {
        let entity = |value: &&str| TaskEntity { kind: "x".to_owned(), value: (*value).to_owned() };
        values.iter().map(entity).collect()
    }

    fn mapping(value: &str, field: &str) -> EntityMapping {
        EntityMapping {
            kind: "x".to_owned(),
            value: value.to_owned(),
            field: field.to_owned(),
            reason: String::new(),
        }
    }

    fn settled(
        sql: &str,
        named: &[&str],
        given: &[(&str, &str)],
    ) -> Result<Vec<(String, String)>, String> {
        let checked = check(sql, &Dialect::Sqlite, &knowledge(), &[]).unwrap();
        let given = given.iter().map(|(value, field)| mapping(value, field)).collect();
        let settled = correct(given, &entities(named), &checked, &knowledge())?;
        Ok(settled.into_iter().map(|it| (it.value, it.field)).collect())
    }

    fn pair(value: &str, field: &str) -> (String, String) {
        (value.to_owned(), field.to_owned())
    }

    #[test]
    fn s4_31_a_field_is_resolved_in_every_spelling() {
        for written in [
            "customers.city",
            "CUSTOMERS.City",
            "\"customers\".\"city\"",
            "`customers`.`city`",
            "[customers].[city]",
            "main.customers.city",
            " c.city ",
            "city",
            "base.city",
        ] {
            let found = settled(SQL, &["北京"], &[("北京", written)]);
            assert_eq!(found, Ok(vec![pair("北京", "customers.city")]), "{written}");
        }
    }

    #[test]
    fn s4_31_conditions_complete_imprecise_mappings() {
        for (value, field) in [
            ("北京", "customers.city"),
            ("北京市", "customers.city"),
            ("Completed", "orders.status"),
            ("5000.00", "orders.total_amount"),
        ] {
            for given in [
                vec![],
                vec![(value, "customers.town")],
                // A known field that this statement does not use.
                vec![(value, "orders.order_no")],
            ] {
                let found = settled(SQL, &[value], &given);
                assert_eq!(found, Ok(vec![pair(value, field)]), "{value} {given:?}");
            }
        }
    }

    #[test]
    fn s4_31_a_mapping_of_no_entity_is_dropped() {
        let given = [("北京", "c.city"), ("订单数", "COUNT(orders.id)"), ("去年", "nowhere")];
        let found = settled(SQL, &["北京"], &given);
        assert_eq!(found, Ok(vec![pair("北京", "customers.city")]));
        assert_eq!(settled(SQL, &[], &[("销售额", "SUM(x)")]), Ok(Vec::new()));
    }

    #[test]
    fn s4_31_a_missing_entity_is_refused_with_what_to_change() {
        let sql = "WITH x AS (SELECT orders.id AS id FROM orders) SELECT COUNT(id) AS n FROM x";
        let error = settled(sql, &["北京"], &[("北京", "customers.city")]).unwrap_err();
        assert!(error.starts_with("sql_generation_entity_mapping: 实体“北京”"), "{error}");
        assert!(error.contains("customers.city 没有出现在 SQL 中"), "{error}");
        assert!(error.contains("customers.city = '北京'"), "{error}");
        assert_eq!(split_refusal(&error).1, Some(sql));
        assert!(!split_refusal(&error).0.contains("WITH"), "{error}");
        let error = settled(sql, &["北京"], &[("北京", "customers.cityname")]).unwrap_err();
        assert!(error.contains("customers.cityname 不在白名单中"), "{error}");
        assert!(error.contains("（可能是 customers.name、customers.city）"), "{error}");
        let error = settled(sql, &["北京"], &[]).unwrap_err();
        assert!(error.contains("为“北京”（x）各写一条") && error.contains("orders.id"), "{error}");
        assert_eq!(
            split_refusal("no such column: x\n上一条 SQL：\n"),
            ("no such column: x\n上一条 SQL：\n", None)
        );
    }

    #[test]
    fn mapping_follows_its_replaced_field() {
        let candidates = [FieldCandidate {
            missing: "orders.order_amount".to_owned(),
            candidates: vec!["orders.total_amount".to_owned()],
        }];
        let sql = "WITH x AS (SELECT o.order_amount AS t FROM orders AS o) SELECT SUM(t) FROM x";
        let checked = check(sql, &Dialect::Sqlite, &knowledge(), &candidates).unwrap();
        let given = vec![mapping("金额", "`orders`.order_amount")];
        let found = correct(given, &entities(&["金额"]), &checked, &knowledge()).unwrap();
        assert_eq!(found[0].field, "orders.total_amount");
    }
}
