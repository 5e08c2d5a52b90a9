//! Checks every statement: the text must be a single statement, and the statement must not be of a
//! kind that accesses something outside of the database or ends the transaction of the host.

use serde_json::json;
use sqlparser::ast::Ident;
use sqlparser::dialect::{PostgreSqlDialect, SQLiteDialect};
use sqlparser::tokenizer::{Token, Tokenizer};
use wattle_graph::failure::{Failure, code};
use wattle_run::hostcall::sql::SqlValue;
use wattle_run::limit::SqlLimits;

/// SQL dialect of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    /// Folds an identifier as the database does.
    pub(crate) fn fold_identifier(self, name: &Ident) -> String {
        match self {
            Self::Postgres if name.quote_style.is_some() => name.value.clone(),
            Self::Sqlite | Self::Postgres => name.value.to_ascii_lowercase(),
        }
    }

    /// Returns true if a table name of a grant equals a folded name.
    pub(crate) fn identifier_eq(self, written: &str, folded: &str) -> bool {
        match self {
            Self::Sqlite => written.eq_ignore_ascii_case(folded),
            Self::Postgres => written == folded,
        }
    }

    pub(crate) fn parser(self) -> &'static dyn sqlparser::dialect::Dialect {
        match self {
            Self::Sqlite => &SQLiteDialect {},
            Self::Postgres => &PostgreSqlDialect {},
        }
    }
}

/// Kind of a statement, by its first keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementKind {
    /// DML: reads or changes rows and can have parameters.
    Dml,
    /// DDL: defines tables and other objects.
    Ddl,
}

const DML_KEYWORDS: [&str; 9] =
    ["select", "with", "values", "table", "insert", "update", "delete", "replace", "merge"];

const DDL_KEYWORDS: [&str; 5] = ["create", "alter", "drop", "truncate", "comment"];

/// A checked statement.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    pub(crate) text: &'a str,
    pub(crate) parameters: &'a [SqlValue],
    pub(crate) kind: StatementKind,
}

impl<'a> Statement<'a> {
    /// Checks a statement.
    ///
    /// # Errors
    /// Returns `invalid` if the text is not one statement, if the statement is neither DML nor DDL,
    /// or if its placeholders `$n` do not match the parameters. Returns `limit` if the text is too
    /// long.
    pub(crate) fn check(
        dialect: Dialect,
        text: &'a str,
        parameters: &'a [SqlValue],
        limits: &SqlLimits,
    ) -> Result<Self, Failure> {
        if text.len() as u64 > limits.statement_bytes {
            let allowed = limits.statement_bytes;
            return Err(Failure::new(
                code::LIMIT,
                format!("the SQL statement has {} bytes, {allowed} are allowed", text.len()),
            )
            .with_details(json!({ "limit": "sql.statement_bytes" })));
        }
        if text.contains('\0') {
            return Err(invalid("it contains a NUL character"));
        }
        let tokens = Tokenizer::new(dialect.parser(), text)
            .tokenize()
            .map_err(|error| invalid(&error.to_string()))?;
        let words: Vec<&Token> =
            tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
        if dialect == Dialect::Postgres {
            check_tokens(&words)?;
        }
        check_single(&words)?;
        check_placeholders(&words, parameters.len())?;
        Ok(Self { text, parameters, kind: statement_kind(&words)? })
    }
}

fn invalid(reason: &str) -> Failure {
    Failure::new(code::INVALID, format!("the SQL statement cannot be used: {reason}"))
}

/// Rejects text that PostgreSQL splits into other tokens than the tokenizer, because the checks
/// would take code after such text for a string or a comment.
fn check_tokens(words: &[&Token]) -> Result<(), Failure> {
    for (position, token) in words.iter().enumerate() {
        let next = words.get(position + 1);
        let reason = match token {
            // An operator of PostgreSQL ends where a comment begins.
            Token::CustomBinaryOperator(operator)
                if operator.contains("--") || operator.contains("/*") =>
            {
                "a comment follows an operator without a space"
            }
            Token::QuestionMarkDash if next.is_some_and(|it| it.to_string().starts_with('-')) => {
                "a comment follows an operator without a space"
            }
            // The continuation of a string constant has the same escapes as the first part.
            Token::EscapedStringLiteral(_)
                if matches!(next, Some(Token::SingleQuotedString(_))) =>
            {
                "a string with escapes continues on another line"
            }
            _ => continue,
        };
        return Err(invalid(reason));
    }
    Ok(())
}

fn check_single(words: &[&Token]) -> Result<(), Failure> {
    let end = words.iter().position(|token| **token == Token::SemiColon);
    match end {
        // The body of a trigger contains semicolons; triggers belong in migrations.
        Some(end) if words[end..].iter().any(|token| **token != Token::SemiColon) => {
            Err(invalid("it is more than one statement; send them one by one, in a transaction"))
        }
        _ => Ok(()),
    }
}

fn statement_kind(words: &[&Token]) -> Result<StatementKind, Failure> {
    let first = words.iter().find_map(|token| match token {
        Token::LParen => None,
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_lowercase()),
        _ => Some(String::new()),
    });
    match first.as_deref() {
        None => Err(invalid("it is empty")),
        Some(word) if DML_KEYWORDS.contains(&word) => Ok(StatementKind::Dml),
        Some(word) if DDL_KEYWORDS.contains(&word) => Ok(StatementKind::Ddl),
        Some(word) => Err(invalid(&format!(
            "`{}` is not available here; only statements that read, write or define tables are \
             available, and host calls begin and end transactions",
            word.to_uppercase()
        ))),
    }
}

/// Checks that every `$n` has a parameter. SQLite would silently use NULL for a missing parameter.
fn check_placeholders(words: &[&Token], parameters: usize) -> Result<(), Failure> {
    for token in words {
        let Token::Placeholder(name) = token else { continue };
        let number = name.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
        match number {
            Some(number) if (1..=parameters).contains(&number) => {}
            Some(number) if number > 0 => {
                return Err(invalid(&format!(
                    "it uses `{name}`, but only {parameters} parameters are given"
                )));
            }
            _ => return Err(invalid(&format!("`{name}` is not a parameter; write `$1`, `$2`"))),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wattle_run::hostcall::sql::SqlValue;
    use wattle_run::limit::SqlLimits;

    use super::{Dialect, Statement, StatementKind};

    fn check(text: &str, parameters: usize) -> Result<StatementKind, String> {
        let values = vec![SqlValue::Null; parameters];
        let mut kinds = [Dialect::Sqlite, Dialect::Postgres].map(|dialect| {
            Statement::check(dialect, text, &values, &SqlLimits::default())
                .map(|statement| statement.kind)
                .map_err(|failure| failure.message)
        });
        assert_eq!(kinds[0].is_ok(), kinds[1].is_ok(), "{text}");
        std::mem::replace(&mut kinds[0], Ok(StatementKind::Dml))
    }

    #[test]
    fn dml_and_ddl_statements_pass() {
        for text in [
            "SELECT 1",
            "  (select 1) ; ",
            "/* why */ WITH a AS (SELECT 1) SELECT * FROM a -- end",
            "INSERT INTO t VALUES (';') RETURNING id",
            "select \"a;b\" from t;",
        ] {
            assert_eq!(check(text, 0), Ok(StatementKind::Dml), "{text}");
        }
        assert_eq!(check("CREATE TABLE t (id INTEGER)", 0), Ok(StatementKind::Ddl));
    }

    #[test]
    fn statements_other_than_one_dml_or_ddl_statement_are_rejected() {
        for text in [
            "",
            ";",
            "SELECT 1; DROP TABLE t",
            "COMMIT",
            "begin",
            "ATTACH 'x.db' AS x",
            "PRAGMA foreign_keys = off",
            "SET ROLE admin",
            "COPY t TO '/tmp/x'",
            "EXPLAIN ANALYZE DELETE FROM t",
            "'text'",
            "SELECT 'open",
            "SELECT 1 \0",
        ] {
            assert!(check(text, 0).is_err(), "{text}");
        }
    }

    #[test]
    fn tokens_that_postgresql_reads_differently_are_rejected() {
        let check = |text: &str| {
            let limits = SqlLimits::default();
            let checked = Statement::check(Dialect::Postgres, text, &[], &limits);
            checked.map(drop).map_err(|failure| failure.code)
        };
        for text in [
            "SELECT 1 <->-- '\n, f() --'",
            "SELECT 1 ||/* ' */, f() --'",
            "SELECT a ?-- '\n, f() --'",
            "SELECT E'a'\n'\\'', f() --'",
            "SELECT $☃$ ' $☃$, f() --'",
        ] {
            assert_eq!(check(text), Err("invalid".to_owned()), "{text}");
        }
        for text in [
            "SELECT 1 +-- '\n2",
            "SELECT a <-> -- '\nb",
            "SELECT a ?- b",
            "SELECT E'a' || E'\\''",
            "SELECT 'a'\n'b'",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn placeholders_must_match_parameters() {
        check("SELECT $1, $2, $1", 2).unwrap();
        check("SELECT '$3'", 0).unwrap();
        for (text, given) in [("SELECT $2", 1), ("SELECT $0", 1), ("SELECT $x", 1)] {
            assert!(check(text, given).is_err(), "{text}");
        }
    }

    #[test]
    fn long_statements_are_rejected() {
        let limits = SqlLimits { statement_bytes: 10, ..SqlLimits::default() };
        let failure =
            Statement::check(Dialect::Sqlite, "SELECT 1234567", &[], &limits).unwrap_err();
        assert_eq!(failure.code, "limit");
    }
}
