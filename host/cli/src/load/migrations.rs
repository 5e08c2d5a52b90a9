//! Migrations of apps. They can change a database in any way, so the operator must permit them.
//! Migrations run in separate tasks, which continue even if a newer load of the app replaces the
//! load that started them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, watch};
use tokio::task::JoinError;
use wattle_graph::id::{AppName, Digest, PluginName};
use wattle_run::grant::SqlAccess;
use wattle_sql::{Databases, Script};

use crate::config::{Config, GrantSpec, MigrateRule};
use crate::load::grants::{self, GrantTables, PluginTable};
use crate::load::limits::MIGRATION_PLACES;

/// The migrations of an app for one database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseMigrations {
    /// Name of the database.
    pub database: String,
    /// Content of the migration files.
    pub scripts: Vec<Script>,
}

/// The error for migrations that may not change a database.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "app `{app}` may not change database `{database}` by its migrations, because it is not granted \
     write access to it\n  hint: {hint}"
)]
pub struct MigrationDenied {
    /// Name of the app.
    pub app: AppName,
    /// Name of the database.
    pub database: String,
    /// The entry to add to the configuration.
    pub hint: String,
}

/// The parts of an app that decide whether its migrations are permitted.
pub struct MigrationRequest<'a> {
    /// Name of the app.
    pub app: &'a AppName,
    /// The app's own plugins.
    pub plugins: Vec<&'a PluginName>,
    /// Permissions that the app requests for its own plugins.
    pub needs: &'a GrantSpec,
}

impl MigrationRequest<'_> {
    /// Returns the error if the migrations of the app may not change a database. A database that is
    /// not configured is not an error here, because other code reports it.
    pub fn refusal(
        &self,
        database: &str,
        config: &Config,
        tables: &GrantTables,
    ) -> Option<MigrationDenied> {
        let app = self.app;
        let hint = match &config.sql.get(database)?.migrate {
            MigrateRule::Nobody => return None,
            MigrateRule::Writers if self.is_trusted(tables) => return None,
            MigrateRule::Writers if self.has_writer(database, tables) => return None,
            MigrateRule::Writers => self.missing_entry(database, tables),
            MigrateRule::Apps(apps) if apps.contains(app) => return None,
            MigrateRule::Apps(_) => {
                format!("add `\"{app}\"` to `migrate` under `[sql.{database}]` in wattle.toml")
            }
        };
        Some(MigrationDenied { app: app.clone(), database: database.to_owned(), hint })
    }

    /// Returns true if the operator trusts the app and has no table for its plugins. The app is
    /// granted everything that it requests, including its migrations.
    fn is_trusted(&self, tables: &GrantTables) -> bool {
        let has_table = |plugin: &&PluginName| tables.has_table_named(self.app, plugin);
        tables.trusts(self.app) && !self.plugins.iter().any(has_table)
    }

    /// Returns true if a plugin of the app itself is granted write access to a database.
    fn has_writer(&self, database: &str, tables: &GrantTables) -> bool {
        self.plugins.iter().any(|plugin| {
            let PluginTable { key, granted, is_trusted, .. } =
                tables.table_of(self.app, plugin, true);
            let decision = grants::decide(&key, self.needs, granted, is_trusted);
            let rule = decision.grants.sql.get(database);
            rule.is_some_and(|rule| rule.access == SqlAccess::ReadWrite)
        })
    }

    /// Returns the entry of the configuration that would permit the migrations: the grant that the
    /// app requests, if it is sufficient, or else an entry in `migrate`.
    fn missing_entry(&self, database: &str, tables: &GrantTables) -> String {
        let needs = self.needs.databases();
        let requests = needs.get(database).is_some_and(|rule| rule.access == SqlAccess::ReadWrite);
        match self.plugins.first() {
            Some(plugin) if requests => format!(
                "add `sql = [{{ database = \"{database}\", access = \"read-write\" }}]` under \
                 `[grants.{}]` in wattle.toml",
                tables.table_of(self.app, plugin, true).key
            ),
            _ => format!(
                "add `migrate = [\"{}\"]` under `[sql.{database}]` in wattle.toml",
                self.app
            ),
        }
    }
}

/// The result of migrations: all problems, one message per problem.
type Outcome = Result<(), Vec<String>>;

/// The migrations of all apps that were started and whose outcome was not returned yet.
pub(super) struct Migrations {
    /// Running migrations by folder of the app.
    running: Mutex<BTreeMap<PathBuf, Running>>,
    permits: Arc<Semaphore>,
    stop: watch::Sender<bool>,
}

/// Migrations that were started.
struct Running {
    /// Digest of the migrations.
    plan: Digest,
    outcome: watch::Receiver<Option<Outcome>>,
}

impl Default for Migrations {
    fn default() -> Self {
        let permits = Arc::new(Semaphore::new(MIGRATION_PLACES));
        Self { running: Mutex::default(), permits, stop: watch::Sender::new(false) }
    }
}

impl Migrations {
    /// Applies the migrations of the app in a folder, or waits for them if they are running.
    ///
    /// # Errors
    ///
    /// A message with all problems.
    pub(super) async fn apply(
        &self,
        folder: &Path,
        databases: &Databases,
        app: &AppName,
        migrations: Vec<DatabaseMigrations>,
    ) -> Result<(), String> {
        let plan = digest(&migrations);
        let (permits, databases, app) = (self.permits.clone(), databases.clone(), app.clone());
        let work = move || async move {
            // The semaphore is never closed.
            let _permit = permits.acquire_owned().await;
            apply(databases, app, migrations).await
        };
        let outcome = self.run_once(folder, plan, work).await;
        outcome.map_err(|problems| problems.join("\n"))
    }

    /// Starts work for a folder, unless work of the same plan is already started and its outcome
    /// was not returned yet. Waits for the outcome and returns it. The work continues even if the
    /// caller stops waiting.
    async fn run_once<F>(&self, folder: &Path, plan: Digest, work: impl FnOnce() -> F) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let mut outcome = self.begin(folder, plan, work);
        let ended = outcome.wait_for(Option::is_some).await.map(|outcome| (*outcome).clone());
        self.end(folder, plan);
        match ended {
            Ok(Some(outcome)) => outcome,
            Ok(None) | Err(_) => Err(vec!["the migrations were aborted".to_owned()]),
        }
    }

    fn begin<F>(
        &self,
        folder: &Path,
        plan: Digest,
        work: impl FnOnce() -> F,
    ) -> watch::Receiver<Option<Outcome>>
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let mut running = self.lock();
        let known = running.get(folder).filter(|known| known.plan == plan);
        if let Some(outcome) = known.map(|known| known.outcome.clone()) {
            return outcome;
        }
        let outcome = self.start(work());
        running.insert(folder.to_owned(), Running { plan, outcome: outcome.clone() });
        outcome
    }

    /// Removes work after its outcome was returned.
    fn end(&self, folder: &Path, plan: Digest) {
        let mut running = self.lock();
        if running.get(folder).is_some_and(|known| known.plan == plan) {
            running.remove(folder);
        }
    }

    fn start(
        &self,
        work: impl Future<Output = Outcome> + Send + 'static,
    ) -> watch::Receiver<Option<Outcome>> {
        let (sender, outcome) = watch::channel(None);
        let stop = self.stop.subscribe();
        let work = tokio::spawn(async move {
            tokio::select! {
                outcome = work => outcome,
                () = stopped(stop) => Err(vec!["the host is stopping".to_owned()]),
            }
        });
        tokio::spawn(async move {
            let outcome = work.await;
            let aborted =
                |error: JoinError| Err(vec![format!("the migrations were aborted: {error}")]);
            sender.send_replace(Some(outcome.unwrap_or_else(aborted)));
        });
        outcome
    }

    /// Removes the migrations of an app that was removed. The migrations continue until they end.
    pub(super) fn remove(&self, folder: &Path) {
        self.lock().remove(folder);
    }

    /// Stops all migrations. Their databases remain unchanged.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// The lock protects single map operations, so the map is consistent even if the lock is
    /// poisoned.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the loader no longer exists.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn apply(databases: Databases, app: AppName, migrations: Vec<DatabaseMigrations>) -> Outcome {
    let mut problems = Vec::new();
    for DatabaseMigrations { database, scripts } in migrations {
        match databases.migrate(&app, &database, scripts).await {
            Ok(applied) if applied.is_empty() => {}
            Ok(applied) => {
                let migrations = applied.join(", ");
                tracing::info!(%app, %database, migrations, "migrated");
            }
            Err(error) => problems.push(error_chain(&error)),
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn digest(migrations: &[DatabaseMigrations]) -> Digest {
    let mut lines = String::new();
    for DatabaseMigrations { database, scripts } in migrations {
        for Script { path, text } in scripts {
            let digest = Digest::of(text.as_bytes()).to_hex();
            lines.push_str(&format!("{database} {} {digest}\n", path.display()));
        }
    }
    Digest::of(lines.as_bytes())
}

/// Formats an error with its causes, because the message of an error does not contain them.
pub(super) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::sync::oneshot;

    use super::*;
    use crate::config::parse;
    use crate::load::grants::KnownNames;
    use crate::load::manifest::Manifest;

    const MANIFEST: &str = r#"
        [app]
        name = "shop"
        version = "1"
        [components]
        desk = "desk.wasm"
        [needs]
        sql = [{ database = "notes", access = "read-write" }, { database = "sales" }]
        [migrations.notes]
        sqlite = "notes"
        [migrations.sales]
        sqlite = "sales"
        [migrations.nowhere]
        sqlite = "nowhere"
    "#;

    fn refused_by(config: &Config) -> Vec<MigrationDenied> {
        let tables = GrantTables::new(config, config.grants.clone(), KnownNames::default());
        Manifest::parse(MANIFEST).unwrap().refused_migrations(config, &tables)
    }

    /// Returns the databases that the app may not change, with the hints.
    fn refused(config: &str) -> Vec<(String, String)> {
        let urls = "[sql.notes]\nurl = \"sqlite:notes.db\"\n\
                    [sql.sales]\nurl = \"sqlite:sales.db\"\n";
        let config = parse(&format!("{urls}{config}"), Path::new("/")).unwrap();
        let refused = refused_by(&config);
        refused.into_iter().map(|it| (it.database, it.hint)).collect()
    }

    fn databases(config: &str) -> Vec<String> {
        refused(config).into_iter().map(|(database, _)| database).collect()
    }

    #[test]
    fn migrations_need_write_access() {
        let all = refused("");
        let hint = "`sql = [{ database = \"notes\", access = \"read-write\" }]` under \
                    `[grants.\"shop/desk\"]`";
        assert!(all[0].1.contains(hint), "{all:?}");
        assert!(all[1].1.contains("`migrate = [\"shop\"]` under `[sql.sales]`"), "{all:?}");

        let grant = |access: &str| {
            let rule = format!("{{ database = \"notes\", access = \"{access}\" }}");
            format!("[grants.\"shop/desk\"]\nsql = [{rule}]\n")
        };
        assert_eq!(databases(&grant("read-only")), ["notes", "sales"]);
        assert_eq!(databases(&grant("read-write")), ["sales"]);
        // A grant for a plugin that is not the app's own does not permit its migrations.
        for other in ["std", "shop/std", "desk", "other/desk"] {
            let grant = grant("read-write").replace("shop/desk", other);
            assert_eq!(databases(&grant), ["notes", "sales"], "{other}");
        }
        assert!(databases("[apps.shop]\n").is_empty(), "a trusted app gets what it requests");
        let limited = format!("[apps.shop]\n{}", grant("read-write"));
        assert_eq!(databases(&limited), ["sales"], "the operator listed what it gets");
    }

    #[test]
    fn a_database_can_name_the_apps_that_change_it() {
        let named = |rule: &str| {
            let text = "[sql.sales]\nurl = \"sqlite:sales.db\"\n";
            let config = parse(&format!("{text}migrate = {rule}\n[apps.shop]\n"), Path::new("/"));
            refused_by(&config.unwrap())
        };
        assert!(named("[\"shop\", \"other\"]").is_empty());
        assert!(named("false").is_empty());
        let refused = named("[\"other\"]");
        let hint = "add `\"shop\"` to `migrate` under `[sql.sales]`";
        assert!(refused[0].to_string().contains(hint), "{refused:?}");
    }

    #[tokio::test]
    async fn migrations_run_once_and_continue_if_their_load_is_dropped() {
        let migrations = Migrations::default();
        let (folder, plan) = (Path::new("plugins/notes"), Digest::of(b"first"));
        let (release, held) = oneshot::channel::<()>();
        let slow = || async move {
            held.await.unwrap();
            Err(vec!["a table is missing".to_owned()])
        };
        assert_eq!(migrations.run_once(folder, plan, slow).now_or_never(), None);
        release.send(()).unwrap();
        // The next load gets the outcome of these migrations.
        let again = || async { Ok(()) };
        let outcome = migrations.run_once(folder, plan, again).await;
        assert_eq!(outcome, Err(vec!["a table is missing".to_owned()]));
        let corrected = migrations.run_once(folder, plan, || async { Ok(()) }).await;
        assert_eq!(corrected, Ok(()), "a later load applies them again");
    }

    #[tokio::test]
    async fn changed_migrations_replace_running_ones() {
        let migrations = Migrations::default();
        let (folder, plan) = (Path::new("plugins/notes"), Digest::of(b"first"));
        let first = migrations.run_once(folder, plan, std::future::pending);
        assert_eq!(first.now_or_never(), None);
        let second = migrations.run_once(folder, Digest::of(b"second"), || async { Ok(()) }).await;
        assert_eq!(second, Ok(()));
        assert!(migrations.lock().is_empty());
    }

    #[tokio::test]
    async fn migrations_are_aborted_when_the_host_stops() {
        let migrations = Migrations::default();
        migrations.stop();
        let plan = Digest::of(b"first");
        let outcome = migrations.run_once(Path::new("notes"), plan, std::future::pending).await;
        assert_eq!(outcome, Err(vec!["the host is stopping".to_owned()]));
    }
}
