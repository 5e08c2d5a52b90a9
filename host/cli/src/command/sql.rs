//! `wattle sql reader`: creates a PostgreSQL role that can read only granted tables, or prints its
//! statements.

use std::collections::BTreeSet;

use serde::Serialize;
use wattle_graph::suggest;
use wattle_run::grant::{GrantKey, SqlAccess, SqlRule};
use wattle_sql::{DatabaseConfig, ReaderRole, SqlError};

use crate::args::{SqlCommand, SqlReaderArgs};
use crate::config::Config;
use crate::env::{ReadEnv, environment};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;

pub(super) async fn sql(
    config: &Config,
    command: SqlCommand,
    output: Output,
) -> Result<Exit, Error> {
    match command {
        SqlCommand::Reader(args) => reader(config, &args, output, &environment()).await,
    }
}

/// A role that was created, or whose statements are printed.
#[derive(Serialize)]
struct Report {
    role: String,
    tables: BTreeSet<String>,
    statements: Vec<String>,
    executed: bool,
    /// Other tables that the role can read because every role (`PUBLIC`) can read them.
    readable_by_all: Vec<String>,
}

async fn reader(
    config: &Config,
    args: &SqlReaderArgs,
    output: Output,
    env: &ReadEnv,
) -> Result<Exit, Error> {
    let tables = granted_tables(config, args)?;
    let role = ReaderRole::new(&args.role, tables.clone()).map_err(failed)?;
    let mut report = Report {
        role: args.role.clone(),
        tables,
        statements: role.statements(),
        executed: false,
        readable_by_all: Vec::new(),
    };
    if let Some(variable) = &args.execute_env {
        let admin = DatabaseConfig::new(read_variable(env, variable)?);
        let password =
            args.password_env.as_ref().map(|name| read_variable(env, name)).transpose()?;
        let applied = role.apply(&args.database, &admin, password.as_deref()).await;
        report.readable_by_all = applied.map_err(failed)?;
        report.executed = true;
    }
    output.data(&report, render);
    for table in &report.readable_by_all {
        Output::warning(&format!(
            "every role can read `{table}`, so `{}` can as well: `REVOKE SELECT ON {table} FROM \
             PUBLIC` revokes that",
            report.role
        ));
    }
    Ok(Exit::Ok)
}

fn render(report: &Report) -> String {
    if report.executed {
        let tables: Vec<&str> = report.tables.iter().map(String::as_str).collect();
        return format!("role `{}` can read {}", report.role, tables.join(", "));
    }
    let lines = report.statements.iter().map(|statement| format!("{statement};\n"));
    format!("BEGIN;\n{}COMMIT;", lines.collect::<String>())
}

fn read_variable(env: &ReadEnv, name: &str) -> Result<String, Error> {
    env(name).ok_or_else(|| Error::Failed(format!("the environment variable `{name}` is not set")))
}

fn failed(error: SqlError) -> Error {
    Error::Failed(error.to_string())
}

/// Returns the tables of a database that the grants allow plugins to read.
fn granted_tables(config: &Config, args: &SqlReaderArgs) -> Result<BTreeSet<String>, Error> {
    let database = &args.database;
    let Some(known) = config.sql.get(database) else {
        let hint = format!("define it with `url = ...` under `[sql.{database}]` in wattle.toml");
        let question = suggest::did_you_mean(database, config.sql.keys().map(String::as_str));
        return Err(Error::NotFound {
            message: format!("there is no database `{database}`"),
            hint: question.map_or(hint.clone(), |question| format!("{question} Or {hint}")),
        });
    };
    if known.url.starts_with("sqlite:") {
        return Err(Error::Failed(format!(
            "database `{database}` is an SQLite database, which has no roles: for read-only \
             access, the host opens its file for reading only"
        )));
    }
    let mut tables = BTreeSet::new();
    // A plugin that is named without an app means the grants of that plugin in all apps.
    let covers = |wanted: &GrantKey, table: &GrantKey| {
        wanted.plugin == table.plugin && (wanted.app.is_none() || wanted.app == table.app)
    };
    let is_selected = |table: &GrantKey| {
        args.plugins.is_empty() || args.plugins.iter().any(|wanted| covers(wanted, table))
    };
    for (table, needs) in config.grants.iter().filter(|(table, _)| is_selected(table)) {
        match needs.databases().remove(database) {
            Some(SqlRule { access: SqlAccess::ReadOnly, tables: Some(list), .. }) => {
                tables.extend(list);
            }
            Some(SqlRule { access: SqlAccess::ReadOnly, tables: None, .. }) => {
                return Err(Error::Failed(format!(
                    "`[grants.{table}]` grants all tables of database `{database}`\n  hint: add \
                     `tables = [...]` to it, or name other plugins with `--plugin`"
                )));
            }
            _ => {}
        }
    }
    if tables.is_empty() {
        return Err(Error::Failed(format!(
            "no grant gives a plugin read-only access to database `{database}`\n  hint: add `sql = \
             [{{ database = \"{database}\", tables = [...] }}]` under `[grants.<plugin>]`"
        )));
    }
    Ok(tables)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;

    fn config(grants: &str) -> Config {
        let mut config = Config::in_folder(Path::new("/"));
        config.sql = toml::from_str(
            "shop = { url = \"postgres://host@localhost/shop\" }\nown = { url = \"sqlite:own.db\" }",
        )
        .unwrap();
        config.grants = toml::from_str(grants).unwrap();
        config
    }

    fn args(database: &str, plugins: &[&str]) -> SqlReaderArgs {
        SqlReaderArgs {
            database: database.to_owned(),
            role: "shop_reader".to_owned(),
            plugins: plugins.iter().map(|name| name.parse().unwrap()).collect(),
            execute_env: None,
            password_env: None,
        }
    }

    const GRANTS: &str = r#"
        [[reports.sql]]
        database = "shop"
        tables = ["orders"]
        [["nl2sql/nl2sql".sql]]
        database = "shop"
        tables = ["orders", "customers"]
        [[all.sql]]
        database = "shop"
        [[writer.sql]]
        database = "shop"
        access = "read-write"
    "#;

    #[test]
    fn the_granted_tables_of_all_readers_are_combined() {
        let config = config(GRANTS);
        let tables = |plugins: &[&str]| granted_tables(&config, &args("shop", plugins));
        let both = tables(&["reports", "nl2sql", "writer"]).unwrap();
        assert_eq!(both, ["customers", "orders"].map(str::to_owned).into());
        assert_eq!(tables(&["nl2sql/nl2sql"]).unwrap(), both);
        assert!(tables(&["other/nl2sql"]).is_err());
        assert_eq!(tables(&["reports"]).unwrap(), ["orders".to_owned()].into());
        let error = tables(&[]).unwrap_err().to_string();
        assert!(error.contains("[grants.all]") && error.contains("`tables = [...]`"), "{error}");
        assert!(tables(&["writer"]).unwrap_err().to_string().contains("no grant"));
        let error = granted_tables(&config, &args("own", &[])).unwrap_err().to_string();
        assert!(error.contains("SQLite"), "{error}");
        assert!(granted_tables(&config, &args("none", &[])).is_err());
    }

    #[tokio::test]
    async fn a_missing_variable_is_named() {
        let config = config(GRANTS);
        let args = SqlReaderArgs {
            execute_env: Some("ADMIN_URL".to_owned()),
            ..args("shop", &["reports"])
        };
        let env: ReadEnv = Arc::new(|_| None);
        let error = reader(&config, &args, Output { json: false }, &env).await.unwrap_err();
        assert!(error.to_string().contains("`ADMIN_URL`"), "{error}");
    }
}
