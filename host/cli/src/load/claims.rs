//! Names that folders and files claim.
//!
//! The operator configures apps and plugins by name. A name therefore belongs to one folder or
//! file, and the configuration for the name applies to no other folder or file.

use std::path::{Path, PathBuf};

use wattle_graph::id::{AppName, PluginName};

use crate::config::Config;
use crate::load::hinted_message::HintedMessage;
use crate::load::load_state::LoadState;
use crate::paths::canonical;

/// Returns an error message if `[apps.<name>]` in the configuration applies to another folder.
pub(super) fn wrong_folder(config: &Config, app: &AppName, folder: &Path) -> Option<String> {
    let own = canonical(&config.folder_of_app(app)?);
    let folder = canonical(folder);
    if own == folder {
        return None;
    }
    let base = canonical(&config.base);
    let path = folder.strip_prefix(&base).unwrap_or(&folder);
    Some(format!(
        "the app `{app}` is not loaded from `{}`, because `[apps.{app}]` in wattle.toml is for \
         `{}`\n  hint: write `path = \"{}\"` under `[apps.{app}]`, or give this app another name",
        folder.display(),
        own.display(),
        path.display()
    ))
}

/// Returns an error message if another folder has an app with the same name, and the configuration
/// has no table for the app.
pub(super) fn duplicate_app(
    config: &Config,
    app: &AppName,
    folder: &Path,
    state: &LoadState,
) -> Option<String> {
    // An app with a table is loaded only from the folder in the configuration.
    if config.apps.contains_key(app) {
        return None;
    }
    let named = state.folders.iter().filter_map(|(folder, name)| Some((folder, name.as_ref()?)));
    let mut all = named.chain(&state.apps);
    let (other, _) = all.find(|(other, name)| *name == app && *other != folder)?;
    let in_use = state.apps.iter().find(|(_, name)| *name == app);
    Some(format!(
        "the folders `{}` and `{}` both have an app `{app}`, and the host {}\n  hint: give one of \
         them another name, or write `path` of the one that is meant under `[apps.{app}]` in \
         wattle.toml",
        folder.display(),
        other.display(),
        what_is_loaded(in_use.map(|(folder, _)| folder))
    ))
}

/// Returns an error message if another file has a standalone plugin with the same name.
pub(super) fn duplicate_plugin(
    plugin: &PluginName,
    file: &Path,
    state: &LoadState,
) -> Option<String> {
    let other = state.files_of_plugin(plugin).find(|other| *other != file)?;
    let in_use = state.plugins.iter().find(|(_, name)| *name == plugin);
    let message = duplicate_files(plugin, [file, other], in_use.map(|(file, _)| file));
    Some(message.to_string())
}

/// Returns the error message for two files with one plugin. `in_use` is the file from which the
/// plugin was loaded before.
pub(super) fn duplicate_files(
    plugin: &PluginName,
    [one, other]: [&Path; 2],
    in_use: Option<&PathBuf>,
) -> HintedMessage {
    let message = format!(
        "the files `{}` and `{}` both have the plugin `{plugin}`, and the host {}",
        one.display(),
        other.display(),
        what_is_loaded(in_use)
    );
    HintedMessage::new(message, "rename or remove one of them")
}

/// Describes which of two folders or files with the same name the host loads.
fn what_is_loaded(in_use: Option<&PathBuf>) -> String {
    match in_use {
        Some(path) => format!("keeps the version that it has loaded from `{}`", path.display()),
        None => "loads neither".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::parse;

    #[test]
    fn configured_app_is_loaded_only_from_its_configured_folder() {
        let base = tempfile::tempdir().unwrap();
        let folder = |path: &str| {
            let folder = base.path().join(path);
            fs::create_dir_all(&folder).unwrap();
            folder
        };
        let [direct, grouped] = ["plugins/shop", "plugins/group/shop"].map(folder);
        let problem = |config: &str, folder: &Path| {
            let config = parse(config, base.path()).unwrap();
            wrong_folder(&config, &AppName::new("shop").unwrap(), folder)
        };
        assert_eq!(problem("", &grouped), None);
        assert_eq!(problem("[apps.shop]", &direct), None);
        let refused = problem("[apps.shop]", &grouped).unwrap();
        let hint = "write `path = \"plugins/group/shop\"` under `[apps.shop]`";
        assert!(refused.contains(hint), "{refused}");
        let named = "[apps.shop]\npath = \"plugins/../plugins/group/shop\"";
        assert_eq!(problem(named, &grouped), None);
        assert!(problem(named, &direct).is_some());
    }
}
