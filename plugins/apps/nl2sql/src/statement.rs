//! Checks a generated statement on its syntax tree. The host and the database check again that it
//! only reads; the checks here are for a good answer.
//!
//! [`check`] takes these steps in order, and the first one that fails is the refusal:
//!
//! 1. `cut` removes what the model put around the statement.
//! 2. `parse` parses the statement, which must be one query with a bounded depth.
//! 3. The query must begin with `WITH`.
//! 4. `scope` determines the tables and fields. Each form of `FROM` must be supported, and each
//!    table must be in the allowlist.
//! 5. Names in double quotes must be fields, and each field must be in the allowlist. `replace`
//!    replaces a missing field that is close to exactly one other field, and steps 2 to 5 run again.
//!
//! `compared` then lists the values with which the statement compares columns. The node
//! `sql_validate` calls [`is_read_only`] before it executes the statement.

mod compared;
mod cut;
mod limit;
mod parse;
mod readonly;
mod replace;
mod scope;
mod visit;

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::tokenizer::Token;
use wattle_plugin::sql::Dialect;

pub(crate) use self::compared::Comparison;
pub(crate) use self::limit::limited;
pub(crate) use self::readonly::is_read_only;
use self::scope::Findings;
use crate::knowledge::Knowledge;
use crate::state::{AppliedFieldReplacement, FieldCandidate};

/// Prefix of the refusal of texts in double quotes.
pub(crate) const QUOTED_TEXT: &str = "sql_generation_quoted_text";

/// Prefix of the refusal of aliases that the database does not know yet at their position.
pub(crate) const EARLY_NAME: &str = "sql_generation_early_name";

/// A statement that may be executed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Checked {
    pub(crate) sql: String,
    /// Fields of the allowlist that the statement uses, as `table.field`, in order of appearance.
    pub(crate) fields: Vec<String>,
    pub(crate) replacements: Vec<AppliedFieldReplacement>,
    /// Tables by the names under which the statement reads them, in lower case.
    pub(crate) aliases: BTreeMap<String, String>,
    /// Values that the statement compares columns with.
    pub(crate) comparisons: Vec<Comparison>,
}

/// The reason why a statement is refused. Its text begins with a code for programs, because the
/// next step gets only the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("sql_generation_missing_sql: 没有生成 SQL")]
    Empty,
    #[error("sql_generation_too_long: SQL 过长")]
    TooLong,
    #[error("sql_generation_too_deep: SQL 嵌套过深，拆成多个 CTE")]
    TooDeep,
    #[error("sql_generation_syntax_error: {0}")]
    Syntax(String),
    #[error("sql_generation_not_one_query: 必须是单条查询语句")]
    NotOneQuery,
    #[error("sql_generation_not_cte: SQL 必须以 WITH 开头")]
    NotCte,
    #[error("sql_generation_unknown_table: {}", .0.join(", "))]
    UnknownTables(Vec<String>),
    /// Unsupported forms of `FROM`, by their names.
    #[error(
        "sql_generation_unsupported_from: FROM 里不支持 {}，换成表、子查询或该数据库的函数",
        .0.join("、")
    )]
    UnsupportedFrom(Vec<&'static str>),
    #[error("{}", unknown_fields(.0))]
    UnknownFields(Vec<String>),
    /// Names in double quotes that are not fields. Most are texts. Those in `early` are aliases of
    /// the projection that SQLite does not know yet and would interpret as texts. Unknown fields of
    /// the same statement are in `fields`.
    #[error("{}", unknown_names(.texts, .early, .fields))]
    QuotedTexts { texts: Vec<String>, early: Vec<String>, fields: Vec<String> },
}

fn unknown_names(texts: &[String], early: &[String], fields: &[String]) -> String {
    let mut lines = Vec::new();
    if !texts.is_empty() {
        lines.push(quoted_texts(texts));
    }
    if !early.is_empty() {
        lines.push(early_names(early));
    }
    if !fields.is_empty() {
        lines.push(unknown_fields(fields));
    }
    lines.join("\n")
}

fn quoted_texts(texts: &[String]) -> String {
    let literals: Vec<String> = texts.iter().map(|text| literal(text)).collect();
    format!(
        "{QUOTED_TEXT}: 这里没有字段 {}；如果是文本，要用单引号（single quotes）：{}",
        in_quotes(texts),
        literals.join("、")
    )
}

fn early_names(names: &[String]) -> String {
    format!(
        "{EARLY_NAME}: 这里还不能用 SELECT 的别名 {}：写出它的表达式，或者在外层查询里用；\
         如果是文本，要用单引号",
        in_quotes(names)
    )
}

fn unknown_fields(fields: &[String]) -> String {
    format!("sql_generation_unknown_field: {}", fields.join(", "))
}

fn in_quotes(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    names.join("、")
}

/// Checks a statement against the allowlist. Replaces a missing field by one of its candidates, if
/// only one is close.
pub(crate) fn check(
    text: &str,
    dialect: &Dialect,
    knowledge: &Knowledge,
    candidates: &[FieldCandidate],
) -> Result<Checked, Refusal> {
    let cut::Cut { sql, names } = cut::clean(text, dialect)?;
    let (findings, comparisons) = examine(&sql, dialect, knowledge, &names)?;
    let Err(refusal) = check_fields(&findings) else {
        return Ok(Checked::new(sql, findings, comparisons, Vec::new()));
    };
    // A name that may be a text is not a misspelled field, so nothing is replaced.
    if !findings.quoted.is_empty() || !findings.early.is_empty() {
        return Err(refusal);
    }
    let replaced = replace::replace(&sql, &findings.missing, candidates, knowledge);
    let Some((sql, replacements)) = replaced else { return Err(refusal) };
    match examine(&sql, dialect, knowledge, &names) {
        Ok((findings, comparisons)) if check_fields(&findings).is_ok() => {
            Ok(Checked::new(sql, findings, comparisons, replacements))
        }
        // The first refusal names all missing fields, and the next attempt gets candidates only for
        // named ones.
        _ => Err(refusal),
    }
}

impl Checked {
    fn new(
        sql: String,
        findings: Findings,
        comparisons: Vec<Comparison>,
        replacements: Vec<AppliedFieldReplacement>,
    ) -> Self {
        let Findings { fields, aliases, .. } = findings;
        Self { sql, fields, replacements, aliases, comparisons }
    }
}

/// Returns the names in double quotes that no table or alias qualifies. The statement need not pass
/// the checks of this module. A text that cannot be split into tokens has no such names.
pub(crate) fn quoted(sql: &str, dialect: &Dialect) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_qualified = false;
    for token in parse::tokens(sql, dialect).unwrap_or_default() {
        match token.token {
            Token::Whitespace(_) => {}
            Token::Word(word) if word.quote_style == Some('"') && !is_qualified => {
                names.push(word.value);
            }
            other => is_qualified = other == Token::Period,
        }
    }
    names
}

/// Returns the aliases of all projections of a statement, in lower case. The statement need not
/// pass the checks of this module. A text that cannot be parsed has no aliases.
pub(crate) fn given(sql: &str, dialect: &Dialect) -> BTreeSet<String> {
    parse::query(sql, dialect).map(|query| scope::given(&query)).unwrap_or_default()
}

/// Returns a text as an SQL literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns the table that an alias refers to, for errors that name an alias.
pub(crate) fn table_of_alias(
    sql: &str,
    dialect: &Dialect,
    knowledge: &Knowledge,
    alias: &str,
) -> Option<String> {
    let query = parse::query(sql, dialect).ok()?;
    let aliases = scope::examine(&query, dialect, knowledge, &BTreeSet::new()).aliases;
    aliases.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(alias)).map(|(_, table)| table)
}

fn examine(
    sql: &str,
    dialect: &Dialect,
    knowledge: &Knowledge,
    names: &BTreeSet<String>,
) -> Result<(Findings, Vec<Comparison>), Refusal> {
    let query = parse::query(sql, dialect)?;
    if query.with.is_none() {
        return Err(Refusal::NotCte);
    }
    let findings = scope::examine(&query, dialect, knowledge, names);
    if !findings.unsupported.is_empty() {
        return Err(Refusal::UnsupportedFrom(findings.unsupported));
    }
    if findings.unknown_tables.is_empty() {
        return Ok((findings, compared::comparisons(&query)));
    }
    Err(Refusal::UnknownTables(findings.unknown_tables))
}

fn check_fields(findings: &Findings) -> Result<(), Refusal> {
    let mut fields: Vec<String> = Vec::new();
    for missing in &findings.missing {
        if !fields.contains(&missing.name) {
            fields.push(missing.name.clone());
        }
    }
    let Findings { quoted: texts, early, .. } = findings;
    if !texts.is_empty() || !early.is_empty() {
        return Err(Refusal::QuotedTexts { texts: texts.clone(), early: early.clone(), fields });
    }
    if fields.is_empty() { Ok(()) } else { Err(Refusal::UnknownFields(fields)) }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::sql::Dialect;

    use super::{Checked, Refusal, check, table_of_alias};
    use crate::state::FieldCandidate;
    use crate::testing::knowledge;

    fn checked(text: &str) -> Result<Checked, Refusal> {
        check(text, &Dialect::Sqlite, &knowledge(), &[])
    }

    fn fields(text: &str) -> Vec<String> {
        checked(text).unwrap_or_else(|refusal| panic!("{text}: {refusal}")).fields
    }

    #[test]
    fn fields_are_found_in_every_clause() {
        assert_eq!(
            fields(
                "WITH x AS (SELECT c.city AS place, COUNT(o.id) AS n FROM orders o
                     JOIN customers AS c ON c.id = o.customer_id
                     WHERE o.status IN (SELECT status FROM orders) GROUP BY c.city)
                 SELECT place, n FROM x WHERE x.n > 1 ORDER BY n DESC"
            ),
            ["customers.city", "orders.id", "customers.id", "orders.customer_id", "orders.status"]
        );
        assert_eq!(
            fields("WITH x AS (SELECT total_amount AS t FROM orders ORDER BY t) SELECT t FROM x"),
            ["orders.total_amount"]
        );
        assert_eq!(fields("WITH x AS (SELECT 1 AS a) SELECT a FROM x"), Vec::<String>::new());
        // The database reports the cycle.
        assert_eq!(
            fields(
                "WITH orders AS (SELECT id FROM orders WHERE status = 'paid')
                 SELECT COUNT(*) FROM orders"
            ),
            ["orders.id", "orders.status"]
        );
    }

    #[test]
    fn fields_outside_of_the_allowlist_are_refused() {
        let unknown = |fields: &[&str]| {
            Err(Refusal::UnknownFields(fields.iter().map(|it| (*it).to_owned()).collect()))
        };
        assert_eq!(
            checked("WITH x AS (SELECT o.amount, o.paid FROM orders o) SELECT * FROM x"),
            unknown(&["orders.amount", "orders.paid"])
        );
        assert_eq!(
            checked("WITH x AS (SELECT amount FROM orders) SELECT * FROM x"),
            unknown(&["orders.amount"])
        );
        assert_eq!(
            checked("WITH x AS (SELECT 1) SELECT orders.paid FROM orders, x"),
            unknown(&["orders.paid"])
        );
    }

    #[test]
    fn tables_and_ctes_are_distinguished_by_scope() {
        let refused = |text: &str, tables: &[&str]| {
            let tables = tables.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(checked(text), Err(Refusal::UnknownTables(tables)), "{text}");
        };
        refused("WITH a AS (SELECT * FROM b) SELECT * FROM a", &["b"]);
        refused(
            "WITH x AS (WITH secrets AS (SELECT 1) SELECT * FROM secrets)
             SELECT * FROM secrets",
            &["secrets"],
        );
        refused("WITH x AS (SELECT 1) SELECT * FROM x, other.orders", &["other.orders"]);
        refused(
            "WITH x AS (SELECT 1) SELECT * FROM pragma_table_info('orders')",
            &["pragma_table_info"],
        );
        for text in [
            "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
            "WITH a AS (SELECT 1 AS i), b AS (SELECT i FROM a) SELECT * FROM b, a",
            "WITH a AS (SELECT 1 AS i) SELECT (SELECT i FROM a) FROM orders",
            "WITH orders AS (SELECT id AS x FROM customers) SELECT orders.x FROM orders",
            "WITH a AS (SELECT 1) SELECT * FROM main.orders, \"ORDERS\" AS o",
        ] {
            assert!(checked(text).is_ok(), "{text}: {:?}", checked(text));
        }
    }

    #[test]
    fn s4_35_visibility_of_ctes_depends_on_the_database() {
        for case in [
            "WITH secrets AS (SELECT * FROM secrets) SELECT * FROM secrets => secrets",
            "WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a => b",
            "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3)
             SELECT * FROM n => n",
            "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM c), c AS (SELECT id FROM orders)
             SELECT id FROM a WHERE id IN (SELECT id FROM b) => b",
            "WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a => accepted",
            "WITH RECURSIVE a AS (WITH c AS (SELECT * FROM b) SELECT * FROM c),
             b AS (SELECT id FROM orders) SELECT * FROM a => accepted",
            "WITH RECURSIVE a AS (SELECT 1 AS i UNION SELECT i + 1 FROM a, b WHERE i < n),
             b AS (SELECT COUNT(*) AS n FROM orders) SELECT MAX(i) AS most FROM a => accepted",
        ] {
            let (text, postgres) = case.rsplit_once(" => ").unwrap();
            assert!(checked(text).is_ok(), "{text}: {:?}", checked(text));
            let found = check(text, &Dialect::Postgres, &knowledge(), &[]);
            match found {
                Err(Refusal::UnknownTables(tables)) => assert_eq!(tables[0], postgres, "{text}"),
                found => assert!(found.is_ok() && postgres == "accepted", "{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn only_one_query_that_begins_with_a_cte_is_accepted() {
        assert_eq!(checked(" ; "), Err(Refusal::Empty));
        assert_eq!(checked("SELECT 1"), Err(Refusal::NotCte));
        assert_eq!(checked("DELETE FROM orders"), Err(Refusal::NotOneQuery));
        let expected = Err(Refusal::NotOneQuery);
        assert_eq!(checked("WITH x AS (SELECT 1) SELECT * FROM x; DELETE FROM orders"), expected);
        assert!(matches!(checked("WITH x AS (SELEC 1) SELECT"), Err(Refusal::Syntax(_))));
        let long = format!("WITH x AS (SELECT 1{}) SELECT * FROM x", "+1".repeat(2_000));
        assert_eq!(checked(&long), Err(Refusal::TooLong));
    }

    #[test]
    fn wrapping_of_models_is_removed() {
        for text in [
            "WITH x AS (SELECT `id` FROM `orders`) SELECT '`' FROM x;",
            "```sql\nWITH x AS (SELECT `id` FROM `orders`) SELECT '`' FROM x;\n```",
        ] {
            for (dialect, sql) in [
                (Dialect::Sqlite, "WITH x AS (SELECT `id` FROM `orders`) SELECT '`' FROM x"),
                (Dialect::Postgres, "WITH x AS (SELECT \"id\" FROM \"orders\") SELECT '`' FROM x"),
            ] {
                assert_eq!(check(text, &dialect, &knowledge(), &[]).unwrap().sql, sql, "{text}");
            }
        }
    }

    fn replaced(text: &str, candidates: &[(&str, &[&str])]) -> Result<String, Refusal> {
        let mut knowledge = knowledge();
        knowledge.tables[1].columns[4].description.aliases.push("金额".to_owned());
        let candidates: Vec<FieldCandidate> = candidates
            .iter()
            .map(|(missing, fields)| FieldCandidate {
                missing: (*missing).to_owned(),
                candidates: fields.iter().map(|it| (*it).to_owned()).collect(),
            })
            .collect();
        check(text, &Dialect::Sqlite, &knowledge, &candidates).map(|checked| checked.sql)
    }

    #[test]
    fn s4_31_missing_fields_are_replaced_by_candidates() {
        let total: &[&str] = &["orders.total_amount"];
        assert_eq!(
            replaced(
                "WITH x AS (SELECT 金额, o.order_amount, SUM(o.order_amount) FROM orders AS o)
                 SELECT 1 FROM x",
                &[("orders.order_amount", total), ("orders.金额", total)]
            ),
            Ok("WITH x AS (SELECT o.total_amount AS 金额, o.total_amount AS order_amount, \
                SUM(o.total_amount) FROM orders AS o)
                 SELECT 1 FROM x"
                .to_owned())
        );
        let found = replaced(
            "WITH x AS (SELECT total_amout, `b`.Stauts FROM orders b) SELECT * FROM x",
            &[("orders.total_amout", total), ("orders.Stauts", &["orders.status"])],
        );
        let written = "SELECT b.total_amount AS total_amout, `b`.status AS Stauts FROM";
        assert!(found.unwrap().contains(written));
    }

    /// The queries around may use the name.
    #[test]
    fn s4_31_a_column_of_a_projection_keeps_its_name() {
        let total: &[&str] = &["orders.total_amount"];
        for (from, to) in [
            (
                "WITH x AS (SELECT customer_id, total_amout FROM orders)
                 SELECT SUM(total_amout) AS n FROM x",
                "WITH x AS (SELECT customer_id, orders.total_amount AS total_amout FROM orders)
                 SELECT SUM(total_amout) AS n FROM x",
            ),
            (
                "WITH x AS (SELECT d.total_amout AS n FROM
                 (SELECT o.total_amout /* 金额 */ FROM orders o) d) SELECT n FROM x",
                "WITH x AS (SELECT d.total_amout AS n FROM
                 (SELECT o.total_amount AS total_amout /* 金额 */ FROM orders o) d) SELECT n FROM x",
            ),
            (
                "WITH x AS (SELECT total_amout AS n, total_amout + 1 FROM orders
                 WHERE total_amout > 5 ORDER BY total_amout) SELECT n FROM x",
                "WITH x AS (SELECT orders.total_amount AS n, orders.total_amount + 1 FROM orders
                 WHERE orders.total_amount > 5 ORDER BY orders.total_amount) SELECT n FROM x",
            ),
        ] {
            for missing in ["orders.total_amout", "total_amout", "d.total_amout"] {
                assert_eq!(replaced(from, &[(missing, total)]), Ok(to.to_owned()), "{missing}");
            }
        }
        // The query around uses the correct name.
        let text =
            "WITH x AS (SELECT total_amout FROM orders) SELECT SUM(total_amount) AS n FROM x";
        let found = replaced(text, &[("orders.total_amout", total)]).unwrap();
        assert!(found.contains("(SELECT orders.total_amount FROM"), "{found}");
        // No alias can follow the name inside of the parentheses.
        let text = "WITH x AS (SELECT (total_amout) FROM orders) SELECT * FROM x";
        let unknown = Err(Refusal::UnknownFields(vec!["orders.total_amout".to_owned()]));
        assert_eq!(replaced(text, &[("orders.total_amout", total)]), unknown);
    }

    #[test]
    fn s4_31_a_refusal_names_all_fields() {
        let total: &[&str] = &["orders.total_amount"];
        let text = "WITH x AS (SELECT total_amout, paid FROM orders) SELECT * FROM x";
        let fields = ["orders.total_amout", "orders.paid"].map(ToOwned::to_owned);
        let unknown = Err(Refusal::UnknownFields(fields.to_vec()));
        assert_eq!(replaced(text, &[("orders.total_amout", total)]), unknown);
    }

    #[test]
    fn s4_31_exactly_one_candidate_must_match() {
        let unknown = |field: &str| Err(Refusal::UnknownFields(vec![field.to_owned()]));
        let two = |field: &str| {
            format!(
                "WITH x AS (SELECT {field} FROM orders o JOIN customers c ON c.id = o.customer_id)
                 SELECT * FROM x"
            )
        };
        for (field, candidates, written) in [
            ("o.customer", "customers.name orders.customer_id", "o.customer_id AS customer"),
            ("o.customer_name", "orders.customer_id customers.name", "c.name AS customer_name"),
            ("o.citty", "customers.city orders.status", "c.city AS citty"),
            ("o.city", "customers.city", "c.city"),
            ("o.nmae", "customers.name", "c.name AS nmae"),
            // Fields that are only similar.
            ("o.client", "customers.name orders.customer_id", ""),
            ("o.paid", "orders.total_amount", ""),
            ("o.completed", "customers.is_deleted", ""),
            // A field of a table that is not read.
            ("o.amount_", "order_items.amount", ""),
        ] {
            let missing = field.replace("o.", "orders.");
            let candidates: Vec<&str> = candidates.split(' ').collect();
            let found = replaced(&two(field), &[(missing.as_str(), candidates.as_slice())]);
            if written.is_empty() {
                assert_eq!(found, unknown(&missing), "{field}");
            } else {
                let found = found.unwrap_or_else(|refusal| panic!("{field}: {refusal}"));
                assert!(found.contains(&format!("SELECT {written} FROM")), "{found}");
            }
        }
    }

    #[test]
    fn aliases_resolve_to_tables() {
        let sql = "WITH x AS (SELECT o.id FROM orders AS o) SELECT id FROM x AS y";
        let table = |alias: &str| table_of_alias(sql, &Dialect::Sqlite, &knowledge(), alias);
        assert_eq!(table("o").as_deref(), Some("orders"));
        assert_eq!(table("y"), None);
    }
}
