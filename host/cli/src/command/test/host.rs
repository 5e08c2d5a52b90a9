//! The host of tests: its threads are in memory, and unless tests are live, nothing leaves it.

use std::path::Path;
use std::sync::Arc;

use wattle_graph::id::AppName;
use wattle_run::ports::Sandbox;

use crate::cases::ports::CasePorts;
use crate::command::app;
use crate::config::{Config, SqlConfig, StoreKind, TelemetryTable};
use crate::wire::Overrides;

/// Returns the configuration for tests of an app. With `data`, databases are empty SQLite files in
/// that folder, which have the migrations of the app.
pub(super) fn config(
    mut config: Config,
    name: &AppName,
    folder: &Path,
    data: Option<&Path>,
) -> Config {
    app::include(&mut config, name, folder);
    config.store.kind = StoreKind::Memory;
    config.store.database = None;
    config.telemetry = TelemetryTable::default();
    if let Some(data) = data {
        data.clone_into(&mut config.data);
        for (own, database) in &mut config.sql {
            *database = SqlConfig {
                url: format!("sqlite:{own}.db"),
                password_env: None,
                migrate: database.migrate.clone(),
                migration_timeout: database.migration_timeout,
                max_size: None,
            };
        }
    }
    config
}

/// Returns the adapters for tests: those of the running case, or with `None` the configured ones.
pub(super) fn overrides(sandbox: Arc<dyn Sandbox>, ports: Option<&CasePorts>) -> Overrides {
    let mut overrides = Overrides { sandbox: Some(sandbox), ..Overrides::default() };
    if let Some(ports) = ports {
        overrides.model = Some(Arc::new(ports.clone()));
        overrides.net = Some(Arc::new(ports.clone()));
        overrides.tools = Some(Arc::new(ports.clone()));
        // Files of the app would be written to folders that the environment names.
        overrides.env = Some(Arc::new(|_: &str| None));
    }
    overrides
}
