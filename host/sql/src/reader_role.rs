//! PostgreSQL roles that can only read certain tables.
//!
//! The parser restricts a plugin to the tables of its grant. The role enforces the same restriction
//! in the database, in case the parser misjudges a statement.

use std::collections::BTreeSet;
use std::path::Path;

use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};

use crate::config::{DatabaseConfig, DatabaseUrl};
use crate::error::SqlError;

/// Maximum connections of the role: the connections of one host, and the same number for another
/// host that takes over.
const MAX_ROLE_CONNECTIONS: u32 = 16;

/// Maximum bytes of a role name. PostgreSQL truncates longer names.
const MAX_NAME_BYTES: usize = 63;

/// A PostgreSQL role that can only read certain tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderRole {
    name: String,
    tables: BTreeSet<String>,
}

impl ReaderRole {
    /// Returns a role that can read these tables and views. The names have the form of a grant:
    /// `orders` of the schema `public`, or `sales.orders`.
    ///
    /// # Errors
    ///
    /// Returns [`SqlError::Reader`] if the name needs quotes, is longer than 63 bytes or begins
    /// with `pg_`, or if there are no tables.
    pub fn new(name: &str, tables: BTreeSet<String>) -> Result<Self, SqlError> {
        let wrong = |reason: String| SqlError::Reader { role: name.to_owned(), reason };
        let is_good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let starts_well = name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        if !starts_well || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_good) {
            return Err(wrong(format!(
                "its name must have 1 to {MAX_NAME_BYTES} characters of `a` to `z`, `0` to `9` and \
                 `_`, and must not start with a digit"
            )));
        }
        if name.starts_with("pg_") {
            return Err(wrong("names that begin with `pg_` belong to PostgreSQL".to_owned()));
        }
        if tables.is_empty() {
            return Err(wrong("it needs at least one table that it can read".to_owned()));
        }
        Ok(Self { name: name.to_owned(), tables })
    }

    /// Returns the statements that create the role or update an existing one. Execute them in one
    /// transaction, as a user who can create roles and owns the tables.
    pub fn statements(&self) -> Vec<String> {
        let role = &self.name;
        let mut statements = vec![
            self.create_sql(),
            format!("ALTER ROLE {role} SET default_transaction_read_only = on"),
            format!("ALTER ROLE {role} SET idle_in_transaction_session_timeout = '60s'"),
            self.revoke_sql(),
        ];
        let schemas: BTreeSet<&str> =
            self.tables.iter().map(|table| split_table(table).0).collect();
        statements.extend(
            schemas.iter().map(|it| format!("GRANT USAGE ON SCHEMA {} TO {role}", quote(it))),
        );
        statements.extend(self.tables.iter().map(|table| {
            let (schema, name) = split_table(table);
            format!("GRANT SELECT ON {}.{} TO {role}", quote(schema), quote(name))
        }));
        statements
    }

    /// Returns the statement that creates the role, or keeps an existing one. The statement fails
    /// if a role with this name has more rights, since such a role serves another purpose.
    fn create_sql(&self) -> String {
        let role = &self.name;
        format!(
            "DO $wattle$
DECLARE known pg_roles;
BEGIN
  SELECT * INTO known FROM pg_roles WHERE rolname = '{role}';
  IF NOT FOUND THEN
    CREATE ROLE {role} LOGIN NOINHERIT CONNECTION LIMIT {MAX_ROLE_CONNECTIONS};
  ELSIF known.rolsuper OR known.rolcreaterole OR known.rolcreatedb OR known.rolreplication
    OR known.rolbypassrls
    OR EXISTS (SELECT FROM pg_auth_members WHERE member = known.oid)
    OR EXISTS (SELECT FROM pg_shdepend WHERE refobjid = known.oid AND deptype = 'o')
  THEN
    RAISE EXCEPTION 'role {role} owns something, has rights beyond reading, or is a member of \
             another role; choose another name';
  END IF;
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO {role}', current_database());
END $wattle$"
        )
    }

    /// Returns the statement that revokes all rights of the role on tables, sequences and schemas.
    /// The role can have rights on tables that an earlier call named.
    fn revoke_sql(&self) -> String {
        let role = &self.name;
        format!(
            "DO $wattle$
DECLARE schema text;
BEGIN
  FOR schema IN SELECT nspname FROM pg_namespace
    WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
  LOOP
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM {role}', schema);
    EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA %I FROM {role}', schema);
    EXECUTE format('REVOKE ALL ON SCHEMA %I FROM {role}', schema);
  END LOOP;
END $wattle$"
        )
    }

    /// Executes the statements in one transaction, as the user of `admin`, who must be able to
    /// create roles. If `password` is given, also sets the password of the role. Returns further
    /// tables that the role can read because these tables are granted to `PUBLIC`.
    ///
    /// # Errors
    ///
    /// Returns [`SqlError::Url`], or [`SqlError::Reader`] with the message of the database.
    pub async fn apply(
        &self,
        database: &str,
        admin: &DatabaseConfig,
        password: Option<&str>,
    ) -> Result<Vec<String>, SqlError> {
        let DatabaseUrl::Postgres(options) = DatabaseUrl::parse(database, admin, Path::new(""))?
        else {
            return Err(self.failed("the URL is not a PostgreSQL URL"));
        };
        let failed = |error: sqlx::Error| self.failed(&error.to_string());
        let mut connection = options.disable_statement_logging().connect().await.map_err(failed)?;
        let mut transaction = connection.begin().await.map_err(failed)?;
        let secret = password.map(|password| {
            format!("ALTER ROLE {} PASSWORD '{}'", self.name, password.replace('\'', "''"))
        });
        let standard = "SET LOCAL standard_conforming_strings = on".to_owned();
        for statement in [standard].into_iter().chain(self.statements()).chain(secret) {
            transaction.execute(AssertSqlSafe(statement)).await.map_err(failed)?;
        }
        let readable: Vec<(String, String)> = sqlx::query_as(SELECT_READABLE)
            .bind(&self.name)
            .fetch_all(&mut *transaction)
            .await
            .map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        let known: BTreeSet<(&str, &str)> = self.tables.iter().map(|it| split_table(it)).collect();
        let others = readable.iter().filter(|(schema, table)| !known.contains(&(schema, table)));
        Ok(others.map(|(schema, table)| format!("{schema}.{table}")).collect())
    }

    fn failed(&self, reason: &str) -> SqlError {
        SqlError::Reader { role: self.name.clone(), reason: reason.to_owned() }
    }
}

/// Selects the relations of the application that a role can read by any grant.
const SELECT_READABLE: &str = "SELECT n.nspname::text, c.relname::text
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f') AND n.nspname !~ '^pg_'
      AND n.nspname <> 'information_schema'
      AND has_schema_privilege($1, n.oid, 'USAGE')
      AND has_any_column_privilege($1, c.oid, 'SELECT')
    ORDER BY 1, 2";

/// Splits a table name of a grant into schema and name.
fn split_table(table: &str) -> (&str, &str) {
    table.split_once('.').unwrap_or(("public", table))
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str, tables: &[&str]) -> Result<ReaderRole, SqlError> {
        ReaderRole::new(name, tables.iter().map(|&table| table.to_owned()).collect())
    }

    #[test]
    fn only_the_listed_tables_are_granted() {
        let statements = role("shop_reader", &["orders", "sales.\"odd"]).unwrap().statements();
        let grants: Vec<&String> =
            statements.iter().filter(|it| it.contains("SELECT ON")).collect();
        assert_eq!(
            grants,
            [
                "GRANT SELECT ON \"public\".\"orders\" TO shop_reader",
                "GRANT SELECT ON \"sales\".\"\"\"odd\" TO shop_reader",
            ]
        );
    }

    #[test]
    fn invalid_role_names_and_empty_table_lists_are_rejected() {
        for name in ["", "9x", "Reader", "a b", "x'; DROP ROLE y", "pg_reader", &"a".repeat(64)] {
            assert!(role(name, &["orders"]).is_err(), "{name}");
        }
        assert!(role("reader", &[]).unwrap_err().to_string().contains("at least one table"));
    }
}
