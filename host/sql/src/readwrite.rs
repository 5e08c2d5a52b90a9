//! Restricts plugins with write access, and migrations of PostgreSQL: they can neither use the
//! host's own tables nor define objects that would reach these tables.
//!
//! SQLite reports what a statement accesses (`sqlite/authorizer`). PostgreSQL checks only the
//! rights of the host's role, which include the host's tables. Everything that runs dynamic SQL is
//! therefore rejected, in definitions and in calls, and the names of the host's tables are rejected
//! anywhere. A separate role without these rights for migrations would not suffice: a function that
//! a migration defines could run later with the rights of the host's role, as a trigger on a write
//! of a plugin.

use serde_json::json;
use sqlparser::tokenizer::{Token, Tokenizer, Word};
use wattle_graph::failure::{Failure, code};

use crate::statement::Dialect;

/// Prefix of the host's own tables, in lower case.
pub(crate) const HOST_TABLE_PREFIX: &str = "_wattle_";

/// Types of objects that a plugin may define. Other types are rejected: functions, triggers and
/// rules run SQL that was not checked, and roles, extensions and settings are reserved for the
/// operator.
const ALLOWED_OBJECTS: &[&str] =
    &["domain", "index", "materialized", "sequence", "table", "type", "view", "virtual"];

/// Types of objects that a plugin may create, but not alter or drop. Altering or dropping a schema
/// could affect the host's tables, which are in a schema.
const CREATE_ONLY_OBJECTS: &[&str] = &["schema"];

/// Keywords that can be between `CREATE`, `ALTER` or `DROP` and the type of the object.
const MODIFIER_KEYWORDS: &[&str] =
    &["global", "local", "or", "recursive", "replace", "temp", "temporary", "unique", "unlogged"];

/// Keywords of a definition that lasts as long as the session. All apps that write to a SQLite
/// database share one session. A session of PostgreSQL is reset after each transaction.
const TEMPORARY_KEYWORDS: &[&str] = &["temp", "temporary"];

/// Functions that run dynamic SQL, change the session, read or write files, or reach other sessions
/// and servers. For example, a setting of the session changes how PostgreSQL reads string
/// constants. A name that ends in `*` matches every function whose name begins with it.
const FORBIDDEN_FUNCTIONS: &[&str] = &[
    "connectby*",
    "crosstab*",
    "cursor_to_xml*",
    "database_to_xml*",
    "dblink*",
    "edit",
    "eval",
    "fsdir",
    "fts3_tokenizer",
    "load_extension",
    "load_file",
    "lo_export",
    "lo_import",
    "pg_cancel_backend",
    "pg_execute_server_program",
    "pg_file_*",
    "pg_ls_*",
    "pg_promote",
    "pg_read_*",
    "pg_reload_conf",
    "pg_rotate_logfile",
    "pg_terminate_backend",
    "query_to_xml*",
    "readfile",
    "schema_to_xml*",
    "set_config",
    "table_to_xml*",
    "ts_rewrite",
    "ts_stat",
    "writefile",
    "xpath_table",
];

/// Checks a statement of a plugin with write access.
///
/// # Errors
///
/// Returns `invalid` if the text cannot be split into tokens, and `denied` with the forbidden name.
pub(crate) fn check(dialect: Dialect, text: &str) -> Result<(), Failure> {
    let tokens = Tokenizer::new(dialect.parser(), text).tokenize().map_err(|error| {
        Failure::new(code::INVALID, format!("the SQL statement cannot be used: {error}"))
    })?;
    let tokens: Vec<&Token> =
        tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    reject_host_tables(&tokens)?;
    reject_escapes(&tokens)?;
    check_definition(dialect, &tokens)?;
    check_functions(&tokens)
}

/// Returns true if a text contains the name of a table of the host.
pub(crate) fn names_host_table(text: &str) -> bool {
    text.to_ascii_lowercase().contains(HOST_TABLE_PREFIX)
}

fn denied(rule: &str, subject: &str, reason: &str) -> Failure {
    Failure::new(code::DENIED, format!("the SQL statement is refused: {reason}"))
        .with_details(json!({ "rule": rule, "subject": subject }))
}

/// Rejects names of the host's tables. SQLite accepts a string literal as a name, so string
/// literals of definitions count as names.
fn reject_host_tables(tokens: &[&Token]) -> Result<(), Failure> {
    let is_definition = verb(tokens).is_some();
    for token in tokens {
        let name = match token {
            Token::Word(word) => &word.value,
            Token::SingleQuotedString(text) if is_definition => text,
            _ => continue,
        };
        if name.to_ascii_lowercase().starts_with(HOST_TABLE_PREFIX) {
            let reason = format!("names that begin with `{HOST_TABLE_PREFIX}` belong to the host");
            return Err(denied("own-tables", name, &reason));
        }
    }
    Ok(())
}

/// Rejects identifiers with escapes, which the database would decode to names that this check does
/// not see.
fn reject_escapes(tokens: &[&Token]) -> Result<(), Failure> {
    let is_escape = |window: &[&Token]| {
        let [Token::Word(prefix), Token::Ampersand, Token::Word(name)] = window else {
            return false;
        };
        is_plain(prefix, "u") && name.quote_style.is_some()
    };
    if tokens.windows(3).any(is_escape) {
        let reason = "identifiers with escapes are not available; write the name itself";
        return Err(denied("unicode-escape", "U&\"...\"", reason));
    }
    Ok(())
}

/// Returns the first keyword of a definition, which is `CREATE`, `ALTER` or `DROP`. Returns `None`
/// for other statements.
fn verb<'a>(tokens: &[&'a Token]) -> Option<&'a Word> {
    match tokens.first()? {
        Token::Word(word) if ["create", "alter", "drop"].iter().any(|it| is_plain(word, it)) => {
            Some(word)
        }
        _ => None,
    }
}

fn is_plain(word: &Word, text: &str) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text)
}

fn check_definition(dialect: Dialect, tokens: &[&Token]) -> Result<(), Failure> {
    let Some(verb) = verb(tokens) else { return Ok(()) };
    let mut words = tokens[1..].iter().map_while(|token| match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_lowercase()),
        _ => None,
    });
    let mut is_temporary = false;
    let object = words.find(|word| {
        is_temporary |= TEMPORARY_KEYWORDS.contains(&word.as_str());
        !MODIFIER_KEYWORDS.contains(&word.as_str())
    });
    let object = object.unwrap_or_default();
    if is_temporary && dialect == Dialect::Sqlite {
        let reason = "temporary tables and views are not available on SQLite, where all apps use \
                      one connection that writes; use a table, or a `WITH` part";
        return Err(denied("definition", "temporary", reason));
    }
    let is_made = is_plain(verb, "create") && CREATE_ONLY_OBJECTS.contains(&object.as_str());
    if is_made || ALLOWED_OBJECTS.contains(&object.as_str()) {
        return Ok(());
    }
    let verb = verb.value.to_uppercase();
    let rest = match dialect {
        Dialect::Sqlite => "put other definitions into a migration of the app",
        Dialect::Postgres => "only the operator can execute other definitions",
    };
    let reason = format!(
        "an app may not execute `{verb} {}`; it may define tables, indexes, views, sequences and \
         types; {rest}",
        object.to_uppercase()
    );
    Err(denied("definition", &object, &reason))
}

fn check_functions(tokens: &[&Token]) -> Result<(), Failure> {
    for pair in tokens.windows(2) {
        let [Token::Word(word), Token::LParen] = pair else { continue };
        let name = word.value.to_ascii_lowercase();
        let is_forbidden =
            FORBIDDEN_FUNCTIONS.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == *pattern,
            });
        if is_forbidden {
            let reason = format!("the function `{name}` is not available");
            return Err(denied("function", &name, &reason));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Option<String> {
        let rules = [Dialect::Sqlite, Dialect::Postgres].map(|dialect| {
            let failure = check(dialect, text).err()?;
            assert_eq!(failure.code, "denied", "{failure}");
            Some(failure.details?["rule"].as_str()?.to_owned())
        });
        let [sqlite, postgres] = rules;
        assert_eq!(sqlite, postgres, "{text}");
        sqlite
    }

    #[test]
    fn ordinary_statements_pass() {
        for text in [
            "INSERT INTO notes VALUES ('about _wattle_journal')",
            "UPDATE notes SET title = upper(title) RETURNING id",
            "SELECT nextval('notes_id_seq')",
            "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY)",
            "CREATE UNIQUE INDEX i ON notes (id)",
            "CREATE OR REPLACE VIEW v AS SELECT 1",
            "CREATE MATERIALIZED VIEW v AS SELECT 1",
            "CREATE VIRTUAL TABLE t USING fts5(body)",
            "CREATE SCHEMA sales",
            "ALTER TABLE notes RENAME TO pages",
            "DROP TABLE IF EXISTS pages",
            "TRUNCATE TABLE notes",
        ] {
            assert_eq!(rule(text), None, "{text}");
        }
    }

    #[test]
    fn temporary_objects_are_rejected_on_sqlite() {
        for text in [
            "create temp table draft as select * from notes",
            "CREATE TEMPORARY VIEW notes AS SELECT 1",
        ] {
            check(Dialect::Postgres, text).unwrap();
            let details = check(Dialect::Sqlite, text).unwrap_err().details.unwrap();
            assert_eq!(details, json!({ "rule": "definition", "subject": "temporary" }), "{text}");
        }
    }

    #[test]
    fn names_of_host_tables_are_rejected() {
        for text in [
            "DELETE FROM _wattle_migrations",
            "SELECT * FROM _Wattle_Journal",
            "INSERT INTO \"_wattle_journal\" VALUES ('a', 'b', 1)",
            "CREATE VIEW v AS SELECT * FROM main._wattle_migrations",
            "ALTER TABLE notes RENAME TO _wattle_migrations",
            "ALTER TABLE notes RENAME TO '_wattle_migrations'",
            "DROP TABLE _wattle_journal",
            "TRUNCATE _wattle_journal",
        ] {
            assert_eq!(rule(text).as_deref(), Some("own-tables"), "{text}");
        }
    }

    #[test]
    fn indirect_access_to_host_tables_is_rejected() {
        for (text, expected) in [
            ("CREATE FUNCTION f() RETURNS int AS 'SELECT 1'", "definition"),
            ("CREATE OR REPLACE PROCEDURE p() AS 'x'", "definition"),
            ("CREATE TRIGGER t AFTER INSERT ON notes", "definition"),
            ("CREATE RULE r AS ON INSERT TO notes DO NOTHING", "definition"),
            ("CREATE EXTENSION dblink", "definition"),
            ("CREATE ROLE r SUPERUSER", "definition"),
            ("ALTER SYSTEM SET x = 1", "definition"),
            ("ALTER SCHEMA public RENAME TO old", "definition"),
            ("DROP SCHEMA public CASCADE", "definition"),
            ("DROP OWNED BY me CASCADE", "definition"),
            ("SELECT query_to_xml('SELECT 1', true, true, '')", "function"),
            ("INSERT INTO notes SELECT pg_read_file ('x')", "function"),
            ("SELECT load_extension('x')", "function"),
            ("SELECT set_config('standard_conforming_strings', 'off', true)", "function"),
            ("DELETE FROM U&\"\\005fwattle_journal\"", "unicode-escape"),
        ] {
            assert_eq!(rule(text).as_deref(), Some(expected), "{text}");
        }
    }
}
