//! Resolves the app argument of the commands for authors.

use std::path::{Path, PathBuf};

use wattle_graph::id::AppName;
use wattle_graph::suggest;

use crate::client::{self, Client, Preload};
use crate::config::{Config, DEFAULT_FILE};
use crate::error::Error;
use crate::host::Overrides;
use crate::load;
use crate::load::manifest::FILE;
use crate::paths::canonical;

/// Returns the configuration file in the folder of an app, if the argument is such a folder and the
/// current folder has no configuration file. `wattle new` creates such a file, so that a command
/// can be started outside of the folder of the app.
pub(super) fn configuration(app: Option<&str>) -> Option<PathBuf> {
    let folder = Path::new(app?);
    let file = folder.join(DEFAULT_FILE);
    let has_own = folder.join(FILE).is_file() && file.is_file();
    (has_own && !Path::new(DEFAULT_FILE).is_file()).then_some(file)
}

/// Opens a client for requests of an app. If no server responds and no folder has the app, the
/// store is not opened, so that no data folder is created.
///
/// # Errors
///
/// [`Error::NotFound`] if no folder has the app; the errors of [`Client::open`].
pub(super) async fn client(config: Config, app: &str) -> Result<Client, Error> {
    if let Some(remote) = client::find_server(&config).await? {
        return Ok(Client::Remote(remote));
    }
    if !load::may_have_app(&config, app) {
        return Err(unknown(&config, app));
    }
    Box::pin(Client::local(config, Preload::Apps, Overrides::default())).await
}

/// Returns the error for an app that no folder of the configuration has.
pub(super) fn unknown(config: &Config, app: &str) -> Error {
    let apps = load::apps(config);
    let known = apps.keys().map(String::as_str);
    let hint = match config.file.as_ref().and_then(|file| file.file_name()) {
        Some(file) => {
            let file = config.base.join(file);
            suggest::hint(app, &format!("apps of the configuration `{}`", file.display()), known)
        }
        None => {
            let folder = config.plugins.display();
            let known = suggest::hint(app, &format!("apps of the folder `{folder}`"), known);
            let own = configuration(Some(app)).map_or_else(String::new, |file| {
                format!("; use that of the app with `--config {}`", file.display())
            });
            format!(
                "{known}; no configuration was found, because this folder has no \
                 `{DEFAULT_FILE}`{own}"
            )
        }
    };
    Error::NotFound { message: format!("there is no app `{app}`"), hint }
}

/// Returns the folder of an app, which need not be in the configuration.
pub(super) fn folder(config: &Config, app: Option<&str>) -> Result<PathBuf, Error> {
    let Some(app) = app else { return current(config) };
    let folder = PathBuf::from(app);
    if folder.join(FILE).is_file() {
        return Ok(canonical(&folder));
    }
    let mut apps = load::apps(config);
    apps.remove(app).ok_or_else(|| {
        let hint = "name the folder of an app, or an app of the configuration";
        let question = suggest::did_you_mean(app, apps.keys().map(String::as_str));
        Error::NotFound {
            message: format!("there is no app `{app}`, and no folder `{app}` with an `{FILE}`"),
            hint: question.map_or_else(|| hint.to_owned(), |question| format!("{question} {hint}")),
        }
    })
}

/// Adds an app to a configuration that does not have it. The host trusts an app on the command line
/// like an app in the configuration.
pub(super) fn include(config: &mut Config, name: &AppName, folder: &Path) {
    let known = load::apps(config).remove(name.as_str());
    if known.is_none_or(|known| canonical(&known) != folder) {
        config.apps.entry(name.clone()).or_default().path = Some(folder.to_owned());
    }
}

/// Returns the current folder if it contains an app, or else the folder of the configuration if
/// that contains an app.
fn current(config: &Config) -> Result<PathBuf, Error> {
    let folders = [Path::new("."), config.base.as_path()].map(canonical);
    if let Some(found) = folders.iter().find(|folder| folder.join(FILE).is_file()) {
        return Ok(found.clone());
    }
    let [current, base] = &folders;
    let other = if current == base {
        String::new()
    } else {
        format!(", and none in `{}`, the folder of the configuration", base.display())
    };
    Err(Error::NotFound {
        message: format!("there is no `{FILE}` in this folder{other}"),
        hint: "name an app or its folder, or make an app with `wattle new NAME`".into(),
    })
}
