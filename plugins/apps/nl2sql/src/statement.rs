//! What a generated statement may be, read from its syntax tree. The host and the database check
//! again that it only reads; what is checked here is what makes a good answer.

mod compared;
mod cut;
mod readonly;
mod replace;
mod scope;

use std::collections::BTreeMap;

use sqlparser::ast::{Query, Statement};
use sqlparser::dialect::{Dialect as Syntax, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};
use wattle_plugin::sql::Dialect;

pub(crate) use self::compared::Comparison;
pub(crate) use self::readonly::is_read_only;
use self::scope::Findings;
use crate::knowledge::Knowledge;
use crate::state::{AppliedFieldReplacement, FieldCandidate};

/// Tokens of a statement: the tree is walked by recursion, and a guest's stack is small. Real
/// answers have a few hundred.
const TOKENS: usize = 1_500;

/// A statement that may be executed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Checked {
    pub(crate) sql: String,
    /// Fields of the white-list that it uses, as `table.field`, in their order.
    pub(crate) fields: Vec<String>,
    pub(crate) replacements: Vec<AppliedFieldReplacement>,
    /// Names under which tables are read, in lower case, with the tables.
    pub(crate) aliases: BTreeMap<String, String>,
    /// Values that it compares columns with.
    pub(crate) comparisons: Vec<Comparison>,
}

/// Why a statement is not taken. The text begins with a word for programs: it is all that the
/// next step gets to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    Empty,
    TooLong,
    Syntax(String),
    NotOneQuery,
    NotCte,
    UnknownTables(Vec<String>),
    UnknownFields(Vec<String>),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Empty => formatter.write_str("sql_generation_missing_sql: 没有生成 SQL"),
            Self::TooLong => formatter.write_str("sql_generation_too_long: SQL 过长"),
            Self::Syntax(reason) => write!(formatter, "sql_generation_syntax_error: {reason}"),
            Self::NotOneQuery => {
                formatter.write_str("sql_generation_not_one_query: 必须是单条查询语句")
            }
            Self::NotCte => formatter.write_str("sql_generation_not_cte: SQL 必须以 WITH 开头"),
            Self::UnknownTables(tables) => {
                write!(formatter, "sql_generation_unknown_table: {}", tables.join(", "))
            }
            Self::UnknownFields(fields) => {
                write!(formatter, "sql_generation_unknown_field: {}", fields.join(", "))
            }
        }
    }
}

/// Checks a statement against the white-list. Fields that are missing are replaced by one of
/// their candidates, if there is one.
pub(crate) fn check(
    text: &str,
    dialect: &Dialect,
    knowledge: &Knowledge,
    candidates: &[FieldCandidate],
) -> Result<Checked, Refusal> {
    let sql = cut::clean(text, dialect)?;
    let (findings, comparisons) = examine(&sql, dialect, knowledge)?;
    if findings.missing.is_empty() {
        return Ok(Checked::new(sql, findings, comparisons, Vec::new()));
    }
    let replaced = replace::replace(&sql, &findings.missing, candidates);
    let Some((sql, replacements)) = replaced else { return Err(unknown_fields(&findings)) };
    let (findings, comparisons) = examine(&sql, dialect, knowledge)?;
    if !findings.missing.is_empty() {
        return Err(unknown_fields(&findings));
    }
    Ok(Checked::new(sql, findings, comparisons, replacements))
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

/// The statement with at most `rows` rows, if it does not say by itself how many.
pub(crate) fn limited(sql: &str, dialect: &Dialect, rows: usize) -> String {
    match query(sql, dialect) {
        Ok(query) if query.limit_clause.is_none() && query.fetch.is_none() => {
            format!("{sql}\nLIMIT {rows}")
        }
        _ => sql.to_owned(),
    }
}

/// Aliases of relations with their tables, for errors that name an alias.
pub(crate) fn table_of_alias(
    sql: &str,
    dialect: &Dialect,
    knowledge: &Knowledge,
    alias: &str,
) -> Option<String> {
    let query = query(sql, dialect).ok()?;
    let aliases = scope::examine(&query, knowledge).aliases;
    aliases.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(alias)).map(|(_, table)| table)
}

fn examine(
    sql: &str,
    dialect: &Dialect,
    knowledge: &Knowledge,
) -> Result<(Findings, Vec<Comparison>), Refusal> {
    let query = query(sql, dialect)?;
    if query.with.is_none() {
        return Err(Refusal::NotCte);
    }
    let findings = scope::examine(&query, knowledge);
    if findings.unknown_tables.is_empty() {
        return Ok((findings, compared::comparisons(&query)));
    }
    Err(Refusal::UnknownTables(findings.unknown_tables))
}

fn unknown_fields(findings: &Findings) -> Refusal {
    let mut names: Vec<String> = Vec::new();
    for missing in &findings.missing {
        if !names.contains(&missing.name) {
            names.push(missing.name.clone());
        }
    }
    Refusal::UnknownFields(names)
}

fn syntax(dialect: &Dialect) -> &'static dyn Syntax {
    match dialect {
        Dialect::Postgres => &PostgreSqlDialect {},
        _ => &SQLiteDialect {},
    }
}

fn tokens(text: &str, dialect: &Dialect) -> Result<Vec<TokenWithSpan>, Refusal> {
    let tokens = Tokenizer::new(syntax(dialect), text)
        .tokenize_with_location()
        .map_err(|error| Refusal::Syntax(error.to_string()))?;
    let words = tokens.iter().filter(|it| !matches!(it.token, Token::Whitespace(_))).count();
    if words > TOKENS { Err(Refusal::TooLong) } else { Ok(tokens) }
}

fn parse(text: &str, dialect: &Dialect) -> Result<Vec<Statement>, Refusal> {
    let tokens = tokens(text, dialect)?;
    Parser::new(syntax(dialect))
        .with_tokens_with_locations(tokens)
        .parse_statements()
        .map_err(|error| Refusal::Syntax(error.to_string()))
}

fn query(text: &str, dialect: &Dialect) -> Result<Query, Refusal> {
    let mut statements = parse(text, dialect)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(Statement::Query(query)), true) => Ok(*query),
        (None, _) => Err(Refusal::Empty),
        _ => Err(Refusal::NotOneQuery),
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::sql::Dialect;

    use super::{Checked, Refusal, check, limited, table_of_alias};
    use crate::state::FieldCandidate;
    use crate::testing::knowledge;

    fn checked(text: &str) -> Result<Checked, Refusal> {
        check(text, &Dialect::Sqlite, &knowledge(), &[])
    }

    fn fields(text: &str) -> Vec<String> {
        checked(text).unwrap_or_else(|refusal| panic!("{text}: {refusal}")).fields
    }

    #[test]
    fn fields_are_found_wherever_they_stand() {
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
    }

    #[test]
    fn what_is_not_in_the_white_list_is_refused() {
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
    fn tables_are_told_from_ctes_by_scope() {
        let refused = |text: &str, tables: &[&str]| {
            let tables = tables.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(checked(text), Err(Refusal::UnknownTables(tables)), "{text}");
        };
        refused("WITH secrets AS (SELECT * FROM secrets) SELECT * FROM secrets", &["secrets"]);
        refused("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", &["b"]);
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
    fn only_one_query_that_begins_with_a_cte_is_taken() {
        assert_eq!(checked(" ; "), Err(Refusal::Empty));
        assert_eq!(checked("SELECT 1"), Err(Refusal::NotCte));
        assert_eq!(checked("DELETE FROM orders"), Err(Refusal::NotOneQuery));
        assert_eq!(
            checked("WITH x AS (SELECT 1) SELECT * FROM x; DELETE FROM orders"),
            Err(Refusal::NotOneQuery)
        );
        assert!(matches!(checked("WITH x AS (SELEC 1) SELECT"), Err(Refusal::Syntax(_))));
        let long = format!("WITH x AS (SELECT 1{}) SELECT * FROM x", "+1".repeat(2_000));
        assert_eq!(checked(&long), Err(Refusal::TooLong));
    }

    #[test]
    fn wrapping_of_models_is_taken_off() {
        let sql = "WITH x AS (SELECT \"id\" FROM \"orders\") SELECT '`' FROM x";
        for text in [
            "WITH x AS (SELECT `id` FROM `orders`) SELECT '`' FROM x;",
            "```sql\nWITH x AS (SELECT `id` FROM `orders`) SELECT '`' FROM x;\n```",
        ] {
            for dialect in [Dialect::Sqlite, Dialect::Postgres] {
                assert_eq!(check(text, &dialect, &knowledge(), &[]).unwrap().sql, sql, "{text}");
            }
        }
    }

    #[test]
    fn missing_fields_are_replaced_by_candidates() {
        let candidate = |missing: &str, candidates: &[&str]| FieldCandidate {
            missing: missing.to_owned(),
            candidates: candidates.iter().map(|it| (*it).to_owned()).collect(),
        };
        let replaced = |text: &str, candidates: &[FieldCandidate]| {
            check(text, &Dialect::Sqlite, &knowledge(), candidates).map(|checked| checked.sql)
        };
        assert_eq!(
            replaced(
                "WITH x AS (SELECT 金额, o.paid, SUM(o.paid) FROM orders AS o) SELECT 1 FROM x",
                &[
                    candidate("orders.paid", &["orders.total_amount"]),
                    candidate("orders.金额", &["orders.total_amount"]),
                ]
            ),
            Ok("WITH x AS (SELECT o.total_amount, o.total_amount, SUM(o.total_amount) \
                FROM orders AS o) SELECT 1 FROM x"
                .to_owned())
        );
        let two =
            "WITH x AS (SELECT o.client FROM orders o JOIN customers c ON c.id = o.customer_id)
                   SELECT * FROM x";
        let found =
            replaced(two, &[candidate("orders.client", &["customers.name", "orders.customer_id"])]);
        assert!(found.unwrap().contains("SELECT o.customer_id FROM"), "the same table's id first");
        let found = replaced(two, &[candidate("orders.client", &["customers.name"])]);
        assert!(found.unwrap().contains("SELECT c.name FROM"), "a table that is there");
        let found = replaced(two, &[candidate("orders.client", &["order_items.amount"])]);
        assert_eq!(found, Err(Refusal::UnknownFields(vec!["orders.client".to_owned()])));
    }

    #[test]
    fn a_limit_is_added_where_there_is_none() {
        let sql = "WITH x AS (SELECT 1 LIMIT 1) SELECT * FROM x -- all";
        assert_eq!(limited(sql, &Dialect::Sqlite, 5), format!("{sql}\nLIMIT 5"));
        let sql = "WITH x AS (SELECT 1) SELECT * FROM x LIMIT 3 OFFSET 1";
        assert_eq!(limited(sql, &Dialect::Sqlite, 5), sql);
    }

    #[test]
    fn aliases_lead_to_tables() {
        let sql = "WITH x AS (SELECT o.id FROM orders AS o) SELECT id FROM x AS y";
        let table = |alias: &str| table_of_alias(sql, &Dialect::Sqlite, &knowledge(), alias);
        assert_eq!(table("o").as_deref(), Some("orders"));
        assert_eq!(table("y"), None);
    }
}
