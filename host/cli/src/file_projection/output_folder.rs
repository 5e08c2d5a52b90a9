//! Selects the folder of a file projection: from an environment variable, the configuration, or the
//! app.

use std::path::PathBuf;

use wattle_graph::id::AppName;
use wattle_graph::mapping::FileProjection;

use crate::config::{Config, FilesConfig};
use crate::env::ReadEnv;
use crate::files_folder::FilesFolder;
use crate::load::grants::GrantTables;

/// Suffix of the default environment variable of a file projection, such as `NODE_IO_LOG_DIR` for
/// `[files.node_io]`. The app chooses the name of the projection. Because of the suffix, the app
/// cannot select a variable with another meaning, such as `HOME`.
const VARIABLE_SUFFIX: &str = "_LOG_DIR";

/// Returns the folder of an app's file projection `name`. Returns `None` if the operator disables
/// the projection, if its files could overwrite files of the host, or if the grants of `tables`
/// would permit a component to replace a part of the path. In the last two cases the folder comes
/// from an environment variable, because such folders in `app.toml` or in the configuration are
/// rejected earlier.
pub(super) fn output_folder(
    config: &Config,
    tables: &GrantTables,
    env: &ReadEnv,
    app: &AppName,
    name: &str,
    mapping: &FileProjection,
) -> Option<FilesFolder> {
    let operator = config.apps.get(app).and_then(|app| app.files.get(name));
    if operator.is_some_and(|files| !files.enabled) {
        return None;
    }
    let folder = folder_variable_value(operator, env, name)
        .or_else(|| operator.and_then(|files| files.dir.clone()))
        .unwrap_or_else(|| PathBuf::from(&mapping.dir));
    let folder = config.data.join(folder);
    if let Some(host_file) = config.host_files().conflicting(&folder, &mapping.fixed_parts()) {
        tracing::warn!(
            %app, files = name, folder = %folder.display(), own = %host_file.display(),
            "files of a run are not written: their folder conflicts with a file of the host in the \
             data folder; set the environment variable of the folder to another one"
        );
        return None;
    }
    let folder = FilesFolder::new(&config.data, &folder);
    if let Some(writable) = tables.writable_folder_on_path(&folder) {
        tracing::warn!(
            %app, files = name, folder = %folder.path().display(), writable = %writable.display(),
            "files of a run are not written: the path of their folder leads through a folder where \
             a component may write; set the environment variable of the folder to another one, or \
             grant the component another folder"
        );
        return None;
    }
    Some(folder)
}

/// Returns the folder that an environment variable contains. A variable in `dir_env` takes
/// precedence over `dir`; the default variable does not.
fn folder_variable_value(
    operator: Option<&FilesConfig>,
    env: &ReadEnv,
    name: &str,
) -> Option<PathBuf> {
    let variable = match operator {
        Some(FilesConfig { dir_env: Some(variable), .. }) => variable.clone(),
        Some(FilesConfig { dir: Some(_), .. }) => return None,
        _ => default_variable(name),
    };
    env(&variable).filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// Returns the name of the default variable: `NODE_IO_LOG_DIR` for `node_io`.
fn default_variable(name: &str) -> String {
    let letter = |it: char| if it.is_ascii_alphanumeric() { it.to_ascii_uppercase() } else { '_' };
    name.chars().map(letter).chain(VARIABLE_SUFFIX.chars()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use serde_json::json;
    use wattle_graph::id::AppName;

    use super::output_folder;
    use crate::config::{AppConfig, Config, FilesConfig, parse};
    use crate::env::ReadEnv;
    use crate::load::grants::{GrantTables, KnownNames};

    fn folder(files: Option<FilesConfig>, env: &'static [(&str, &str)]) -> Option<PathBuf> {
        folder_in(Config::in_folder(Path::new("/")), files, env)
    }

    fn folder_in(
        mut config: Config,
        files: Option<FilesConfig>,
        env: &'static [(&str, &str)],
    ) -> Option<PathBuf> {
        let app_name: AppName = "nl2sql".parse().unwrap();
        if let Some(files) = files {
            let app = AppConfig { files: [("node_io".to_owned(), files)].into(), ..<_>::default() };
            config.apps.insert(app_name.clone(), app);
        }
        let read: ReadEnv = Arc::new(|name: &str| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        });
        let mapping = json!({"event": "node_io", "dir": "logs", "path": "{step}.json"});
        let mapping = serde_json::from_value(mapping).unwrap();
        let tables = GrantTables::new(&config, config.grants.clone(), KnownNames::default());
        let folder = output_folder(&config, &tables, &read, &app_name, "node_io", &mapping)?;
        Some(folder.path())
    }

    #[test]
    fn the_default_variable_works_without_configuration() {
        const SET: &[(&str, &str)] = &[("NODE_IO_LOG_DIR", "/var/log/node_io"), ("HOME", "/root")];
        assert_eq!(folder(None, SET), Some(PathBuf::from("/var/log/node_io")));
        assert_eq!(folder(Some(FilesConfig::default()), SET), folder(None, SET));
        assert_eq!(folder(None, &[]), Some(PathBuf::from("/data/logs")));
        assert_eq!(folder(None, &[("NODE_IO_LOG_DIR", "")]), folder(None, &[]));
        assert_eq!(folder(None, &[("NODE_IO_LOG_DIR", "x")]), Some(PathBuf::from("/data/x")));
    }

    #[test]
    fn a_variable_that_names_a_folder_of_the_host_is_refused() {
        for own in ["blobs", "/data", "/data/tenant-routes.json", "versions/x"] {
            let env: &'static [(&str, &str)] = vec![("NODE_IO_LOG_DIR", own)].leak();
            assert_eq!(folder(None, env), None, "{own}");
        }
    }

    #[test]
    fn a_variable_cannot_name_a_folder_that_a_component_may_replace() {
        let folder = |env: &'static [(&str, &str)]| {
            let grants = "[grants.shop]\n\
                          folders = [{ path = \"out\", guest = \"/out\", access = \"read-write\" }]";
            folder_in(parse(grants, Path::new("/base")).unwrap(), None, env)
        };
        assert_eq!(folder(&[("NODE_IO_LOG_DIR", "/base/out/logs")]), None);
        let granted = Some(PathBuf::from("/base/out"));
        assert_eq!(folder(&[("NODE_IO_LOG_DIR", "/base/out")]), granted);
    }

    #[test]
    fn the_configured_folder_takes_precedence_over_the_default_variable() {
        const SET: &[(&str, &str)] = &[("NODE_IO_LOG_DIR", "/a"), ("OTHER", "/b")];
        let configured = |dir: Option<&str>, variable: Option<&str>| FilesConfig {
            dir: dir.map(PathBuf::from),
            dir_env: variable.map(str::to_owned),
            enabled: true,
        };
        assert_eq!(folder(Some(configured(Some("/c"), None)), SET), Some(PathBuf::from("/c")));
        let both = configured(Some("/c"), Some("OTHER"));
        assert_eq!(folder(Some(both), SET), Some(PathBuf::from("/b")));
        let unset = configured(Some("/c"), Some("UNSET"));
        assert_eq!(folder(Some(unset), SET), Some(PathBuf::from("/c")));
        let off = FilesConfig { enabled: false, ..FilesConfig::default() };
        assert_eq!(folder(Some(off), SET), None);
    }
}
