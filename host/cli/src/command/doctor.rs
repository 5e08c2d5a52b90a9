//! `wattle doctor`: checks the host and suggests how to solve problems.

mod external;

use std::path::Path;

use serde::Serialize;
use wattle_graph::id::PluginName;
use wattle_run::ports::Sql as _;
use wattle_run::ports::sandbox::LoadError;
use wattle_run::ports::store::DamageReport;
use wattle_sandbox::config::DEFAULT_MAX_INSTANCES;
use wattle_sql::Databases;

use crate::client::{Client, find_server};
use crate::config::{self, ByteSize, Config, Secret, StoreDatabase, StoreKind};
use crate::data_folder::{PROBE_FILE, make_private_dir};
use crate::env::{ReadEnv, environment};
use crate::error::Error;
use crate::exit::Exit;
use crate::host::free_disk::read_status;
use crate::host::{open_routes, open_sandbox};
use crate::load::{Unused, UnusedTable, find_unconfigured, find_unused};
use crate::output::Output;

/// Maximum number of memory mappings of a live guest; see `MAPPINGS_PER_GUEST` of the sandbox.
const MAPS_PER_INSTANCE: u64 = 11;

/// Timeout for the response of a database.
const DATABASE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Warn,
    Fail,
}

/// One line of the report.
#[derive(Clone, Debug, Serialize)]
struct Finding {
    check: String,
    status: Status,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Default)]
struct Report(Vec<Finding>);

impl Report {
    fn ok(&mut self, check: &str, message: impl Into<String>) {
        self.add(check, Status::Ok, message.into(), None);
    }

    fn warn(&mut self, check: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.add(check, Status::Warn, message.into(), Some(hint.into()));
    }

    fn fail(&mut self, check: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.add(check, Status::Fail, message.into(), Some(hint.into()));
    }

    fn add(&mut self, check: &str, status: Status, message: String, hint: Option<String>) {
        self.0.push(Finding { check: check.to_owned(), status, message, hint });
    }
}

pub(super) async fn doctor(file: Option<&Path>, output: Output) -> Result<Exit, Error> {
    let mut report = Report::default();
    let exit = match config::read(file) {
        Ok(config) => {
            let name = config.file_name();
            match &config.file {
                Some(_) => report.ok("configuration", format!("`{name}` is valid")),
                None => report.warn(
                    "configuration",
                    format!("there is no `{name}` here, so the defaults apply"),
                    "name the file with `--config`, or start in its folder",
                ),
            }
            run_checks(&config, &environment(), &mut report).await;
            let failed = report.0.iter().any(|finding| finding.status == Status::Fail);
            if failed { Exit::Failed } else { Exit::Ok }
        }
        Err(error) => {
            report.fail("configuration", error.to_string(), "correct it, or name another file");
            error.exit()
        }
    };
    output.data(&report.0, |findings| findings.iter().map(render).collect::<Vec<_>>().join("\n"));
    Ok(exit)
}

async fn run_checks(config: &Config, env: &ReadEnv, report: &mut Report) {
    unused_parts(config, report);
    for missing in find_unconfigured(config) {
        report.fail(&format!("app {}", missing.app), missing.to_string(), missing.hint);
    }
    let usable = data_folder(config, report);
    if usable {
        free_disk(config, report);
        store(config, env, report).await;
        sandbox(config, report).await;
    }
    memory(config, report);
    memory_mappings(report);
    model_keys(config, env, report);
    secrets(config, env, report);
    databases(config, env, report).await;
    external::mcp_servers(config, env, report).await;
    external::telemetry(config, env, report);
    listen_address(config, env, report);
}

/// Warns about tables of apps and plugins that the host does not find, and about grants that nothing
/// requests.
fn unused_parts(config: &Config, report: &mut Report) {
    let Unused { tables, grants } = find_unused(config);
    for UnusedTable { table, what, hint } in tables {
        report.warn("configuration", format!("`{table}` applies to no {what} that is here"), hint);
    }
    for grant in grants {
        report.warn("configuration", grant.to_string(), grant.hint);
    }
}

fn data_folder(config: &Config, report: &mut Report) -> bool {
    let data = config.data.display();
    let probe = config.data.join(PROBE_FILE);
    let written = make_private_dir(&config.data)
        .and_then(|()| std::fs::write(&probe, b"wattle"))
        .and_then(|()| std::fs::remove_file(&probe));
    match written {
        Ok(()) => report.ok("data folder", format!("`{data}` is writable")),
        Err(error) => report.fail(
            "data folder",
            format!("`{data}` cannot be written: {error}"),
            "set `data` in wattle.toml to a folder that may be written",
        ),
    }
    report.0.last().is_some_and(|finding| finding.status == Status::Ok)
}

/// Compares the free space of the disk with its floor.
fn free_disk(config: &Config, report: &mut Report) {
    let data = config.data.display();
    let status = match read_status(config) {
        None => return,
        Some(Ok(status)) => status,
        Some(Err(error)) => {
            let hint = "set `limits.free_disk = \"0B\"` if this file system does not report it";
            let message = format!("the free space of `{data}` cannot be read: {error}");
            return report.warn("disk", message, hint);
        }
    };
    let (free, floor) = (ByteSize(status.free_bytes), ByteSize(status.floor_bytes));
    let message = format!("`{data}` has {free} free, and nothing begins below {floor}");
    if status.is_low() {
        report.warn("disk", message, "make room on the disk, or lower `limits.free_disk`");
    } else {
        report.ok("disk", message);
    }
}

async fn store(config: &Config, env: &ReadEnv, report: &mut Report) {
    if let Some(database) = &config.store.database {
        database_store(database, env, report).await;
        return;
    }
    if config.store.kind == StoreKind::Memory {
        report.warn("store", "threads are kept in memory only", "set `store.kind = \"redb\"`");
        return;
    }
    if let Ok(Some(server)) = find_server(config).await {
        let address = server.address().to_owned();
        match Client::Remote(server).get::<DamageReport>("/api/v1/store/verify").await {
            Ok(survey) if survey.damaged.is_empty() => {
                report.ok("store", format!("the server at {address} has the store open"));
            }
            Ok(survey) => damage(&survey, report),
            // The server may have an older version, or the key may not permit the request.
            Err(error) => report.warn("store", error.to_string(), "stop the server to check it"),
        }
        return;
    }
    const HINT: &str = "stop the other process that holds it, or restore it from a backup with \
                        `wattle store restore`";
    let file = config.store_file();
    match super::store::survey_files(config).await {
        Ok(survey) if !survey.damaged.is_empty() => damage(&survey, report),
        Err(error) => report.fail("store", error.to_string(), HINT),
        Ok(_) => match wattle_store::RedbStore::check(&file) {
            Ok(()) => report.ok("store", format!("`{}` opens", file.display())),
            Err(error) => report.fail("store", error.to_string(), HINT),
        },
    }
}

/// Reports all damage, one line each.
fn damage(survey: &DamageReport, report: &mut Report) {
    for damage in &survey.damaged {
        report.fail(
            "store",
            format!("damaged: {damage}"),
            "restore it from a backup; at the next start, a damaged thread is set aside, damaged \
             documents are left out, and everything else works",
        );
    }
}

async fn database_store(database: &StoreDatabase, env: &ReadEnv, report: &mut Report) {
    const HINT: &str = "check `[store]` in wattle.toml, and whether the server is up";
    let (database, warning) = match database.connection(&**env) {
        Ok(connection) => connection,
        Err(reason) => return report.fail("store", reason, HINT),
    };
    if let Some(warning) = warning {
        report.warn("store", warning, "set the variable, or remove `store.password_env`");
    }
    let place = database.display_url();
    match wattle_store::PostgresStore::check(&database).await {
        Ok(true) => report.ok("store", format!("the database at {place} opens")),
        Ok(false) => report.ok(
            "store",
            format!("the database at {place} opens; its tables are created at the first start"),
        ),
        Err(error) => report.fail("store", error.to_string(), HINT),
    }
}

/// Loads a component without exports. The sandbox must reject the component because it has no
/// exports, which shows that the compiler and the pool of guests work.
async fn sandbox(config: &Config, report: &mut Report) {
    const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
    let sandbox = match open_sandbox(config) {
        Ok(sandbox) => sandbox,
        Err(error) => {
            report.fail("sandbox", error.to_string(), "see the limits on memory of this machine");
            return;
        }
    };
    let Ok(name) = PluginName::new("probe") else { return };
    let loaded = sandbox.load(&name, bytes::Bytes::from_static(EMPTY_COMPONENT)).await;
    match loaded {
        Err(LoadError { code: "missing-export" | "wit-version", .. }) | Ok(_) => {
            report.ok("sandbox", "components compile");
        }
        Err(error) => report.fail("sandbox", error.to_string(), "report this with the message"),
    }
}

/// Reports the limits of the pools of memory that have a setting.
fn memory(config: &Config, report: &mut Report) {
    let budget = config.memory_budget();
    let server = config.server.limits.to_limits(config.limits.graphs().state_bytes, &budget);
    let pools = [
        ("guests", budget.guests_bytes),
        ("runs", budget.runs_bytes),
        ("compiled code", budget.code_bytes),
        ("responses", server.response_bytes as u64),
        ("responses of services", budget.services_bytes),
        ("SQLite", budget.sqlite_bytes),
    ];
    let pools = pools.map(|(pool, bytes)| format!("{pool} {}", ByteSize(bytes)));
    let message = format!("at most {}; `limits.memory` raises them", pools.join(", "));
    report.ok("memory", message);
}

fn memory_mappings(report: &mut Report) {
    let instances = u64::from(DEFAULT_MAX_INSTANCES);
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let Some(limit) = limit.and_then(|text| text.trim().parse::<u64>().ok()) else {
        report.ok("memory mappings", "this system has no known limit");
        return;
    };
    let wanted = instances * MAPS_PER_INSTANCE;
    if limit >= wanted {
        let message = format!("{instances} guests at once fit into vm.max_map_count = {limit}");
        report.ok("memory mappings", message);
    } else {
        report.warn(
            "memory mappings",
            format!(
                "vm.max_map_count = {limit} allows {} guests at once",
                limit / MAPS_PER_INSTANCE
            ),
            format!("raise it with `sysctl -w vm.max_map_count={wanted}`"),
        );
    }
}

fn model_keys(config: &Config, env: &ReadEnv, report: &mut Report) {
    if config.model.routes.is_empty() {
        report.warn("models", "there are no model routes", "define `[model.routes.<name>]`");
        return;
    }
    match open_routes(config.model.clone(), config, env) {
        Err(error) => report.fail("models", error.to_string(), "correct `[model]` in wattle.toml"),
        Ok(routes) => {
            let problems = routes.startup_warnings();
            let names: Vec<&str> = routes.names().collect();
            if problems.is_empty() {
                report.ok("models", format!("routes {} have their keys", names.join(", ")));
            }
            for problem in problems {
                report.warn("models", problem, "set the variable before `wattle serve`");
            }
            for replaced in routes.substitutions() {
                report.ok("models", replaced);
            }
        }
    }
}

fn secrets(config: &Config, env: &ReadEnv, report: &mut Report) {
    for (name, source) in &config.secrets {
        let check = format!("secret {name}");
        match source.value(&config.base, &**env) {
            Ok(Secret::Value(_)) => report.ok(&check, "is set"),
            Ok(Secret::Token(source)) => {
                report.ok(&check, format!("is fetched from `{}` when it is used", source.url));
            }
            Err(reason) => report.warn(&check, reason, "requests that name the secret will fail"),
        }
    }
}

async fn databases(config: &Config, env: &ReadEnv, report: &mut Report) {
    let memory_bytes = config.memory_budget().sqlite_bytes;
    for (name, sql) in &config.sql {
        let check = format!("database {name}");
        let (database, _) = sql.connection(name, &**env);
        let databases = [(name.clone(), database)].into();
        let opened = Databases::open_with(databases, &config.data, memory_bytes).await;
        let answer = match opened {
            Ok(databases) => probe(&databases, name).await,
            Err(error) => Err(error.to_string()),
        };
        match answer {
            Ok(()) => report.ok(&check, "answers"),
            Err(message) => {
                report.fail(&check, message, format!("check `url` under `[sql.{name}]`"));
            }
        }
    }
}

async fn probe(databases: &Databases, name: &str) -> Result<(), String> {
    use wattle_run::caller_id::CallerId;
    use wattle_run::grant::SqlAccess;
    use wattle_run::limit::SqlLimits;
    let limits = SqlLimits::default();
    let rule = SqlAccess::ReadOnly.into();
    let query = databases.query(CallerId::default(), name, &rule, &limits, "SELECT 1", &[]);
    let answer = tokio::time::timeout(DATABASE_TIMEOUT, query).await;
    let answer = answer.map_err(|_| format!("no response in {} s", DATABASE_TIMEOUT.as_secs()))?;
    databases.close().await;
    answer.map(drop).map_err(|failure| failure.message)
}

fn listen_address(config: &Config, env: &ReadEnv, report: &mut Report) {
    let address = config.server.listen;
    let has_keys = config.has_keys(&**env);
    if address.ip().is_loopback() {
        report.ok("address", format!("`{address}` is reachable from this machine only"));
    } else if has_keys {
        report.ok(
            "address",
            format!("`{address}` is reachable from other machines, and keys are configured"),
        );
    } else {
        // Keys in the store are not checked, because a running server has the store open.
        report.warn(
            "address",
            format!("`{address}` is reachable from other machines, and no keys are configured"),
            "create one with `wattle key create` if none exists, name a variable with keys as \
             `keys_env` under `[auth]`, or listen on `127.0.0.1`",
        );
    }
}

fn render(finding: &Finding) -> String {
    let status = match finding.status {
        Status::Ok => "ok  ",
        Status::Warn => "warn",
        Status::Fail => "fail",
    };
    let mut line = format!("{status}  {}: {}", finding.check, finding.message);
    if let Some(hint) = &finding.hint {
        line.push_str(&format!("\n      hint: {hint}"));
    }
    line
}
