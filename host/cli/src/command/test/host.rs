//! The host of tests. Its threads are in memory, and it makes no external calls unless tests are
//! live.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wattle_graph::id::AppName;
use wattle_run::ports::Sandbox;

use crate::cases::ports::CasePorts;
use crate::command::app;
use crate::config::{Config, GrantSpec, SqlConfig, StoreKind, TelemetryTable};
use crate::error::Error;
use crate::host::Overrides;

/// Folder in the data folder for the folders of typed components.
const FOLDERS: &str = "folders";

/// Returns the configuration for tests of an app. With `data`, databases are empty SQLite files in
/// that folder, which have the migrations of the app, and the folder also contains the folders of
/// typed components and the files of apps.
///
/// # Errors
///
/// [`Error::File`] if the folders cannot be created.
pub(super) fn config(
    mut config: Config,
    name: &AppName,
    folder: &Path,
    data: Option<&Path>,
) -> Result<Config, Error> {
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
        // The configuration has no file, because the loader would otherwise apply the grants of the
        // file.
        config.file = None;
        isolate(config.grants.values_mut(), data)?;
        for files in config.apps.values_mut().flat_map(|app| app.files.values_mut()) {
            files.dir = None;
        }
    }
    Ok(config)
}

/// Removes the environment variables of typed components, and replaces their folders with empty
/// folders. Components that share a folder also share its replacement.
fn isolate<'n>(grants: impl Iterator<Item = &'n mut GrantSpec>, data: &Path) -> Result<(), Error> {
    // The path is resolved, because the host follows no symbolic link when it opens a folder.
    let root = data.canonicalize().map_err(Error::file("open", data))?.join(FOLDERS);
    let mut replaced: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for needs in grants {
        needs.environment.clear();
        for folder in &mut needs.folders {
            let next = root.join(replaced.len().to_string());
            let replacement: &PathBuf = replaced.entry(folder.path.clone()).or_insert(next);
            fs::create_dir_all(replacement).map_err(Error::file("create", replacement))?;
            folder.path.clone_from(replacement);
        }
    }
    Ok(())
}

/// Returns the adapters for tests. Without `ports`, the configured adapters are used.
pub(super) fn overrides(sandbox: Arc<dyn Sandbox>, ports: Option<&CasePorts>) -> Overrides {
    let mut overrides = Overrides { sandbox: Some(sandbox), ..Overrides::default() };
    if let Some(ports) = ports {
        overrides.model = Some(Arc::new(ports.clone()));
        overrides.net = Some(Arc::new(ports.clone()));
        overrides.tools = Some(Arc::new(ports.clone()));
        // No environment variable is visible, because a variable could name a folder for files of
        // the app.
        overrides.env = Some(Arc::new(|_: &str| None));
    }
    overrides
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[test]
    fn tests_that_are_not_live_get_no_variables_and_folders_of_the_machine() {
        let (machine, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folders =
            "folders = [{ path = \"reports\", guest = \"/reports\", access = \"read-write\" }]";
        let text = format!(
            "[apps.desk.files.log]\ndir = \"/srv/log\"\n\
             [grants.shop]\nenvironment = {{ REGION = \"north\" }}\n{folders}\n\
             [grants.store]\n{folders}\n"
        );
        let of = |data: Option<&Path>| {
            let read = parse(&text, machine.path()).unwrap();
            config(read, &"desk".parse().unwrap(), machine.path(), data).unwrap()
        };
        let tested = of(Some(data.path()));
        let replaced: Vec<&Path> =
            tested.grants.values().map(|needs| needs.folders[0].path.as_path()).collect();
        assert_eq!(replaced[0], replaced[1], "components still share a folder");
        assert!(replaced[0].starts_with(data.path().canonicalize().unwrap()), "{replaced:?}");
        assert_eq!(fs::read_dir(replaced[0]).unwrap().count(), 0);
        assert!(tested.grants.values().all(|needs| needs.environment.is_empty()));
        let dirs = |config: &Config| -> Vec<Option<PathBuf>> {
            config.apps.values().map(|app| app.files["log"].dir.clone()).collect()
        };
        assert_eq!(dirs(&tested), [None]);
        let live = of(None);
        assert_eq!(dirs(&live), [Some(PathBuf::from("/srv/log"))]);
        assert!(live.grants.values().all(|needs| needs.folders[0].path.ends_with("reports")));
    }
}
