//! Installs standalone plugins in the plugins folder.
//!
//! A component is loaded before it is written. It is written to a hidden file, which a scan skips,
//! and which then replaces the file of the plugin in one step. So no file is ever half-written, and
//! a component that cannot be loaded changes nothing.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::json;
use tokio::sync::MutexGuard;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{Digest, PluginName};
use wattle_run::ports::Plugin;
use wattle_run::ports::installer::{CheckedPlugin, PluginInstaller};
use wattle_run::ports::sandbox::LoadError;

use crate::load::grants::GrantDecision;
use crate::load::{Changes, Loader, LoaderInner, names};
use crate::paths::resolve_links;

/// Beginning of the name of a file that is being written.
const DRAFT_PREFIX: &str = ".install-";

/// Mode of an installed file, which is that of files that an operator copies.
#[cfg(unix)]
const FILE_MODE: u32 = 0o644;

#[async_trait]
impl PluginInstaller for Loader {
    async fn check(&self, name: &PluginName, component: Bytes) -> Result<CheckedPlugin, Failure> {
        let _installing = self.inner.begin_install()?;
        Ok(self.inner.check_component(name, component).await?.checked)
    }

    async fn install(&self, name: &PluginName, component: Bytes) -> Result<CheckedPlugin, Failure> {
        let _installing = self.inner.begin_install()?;
        // The code of `ready` stays in memory until the plugin is loaded from its file.
        let ready = self.inner.check_component(name, component.clone()).await?;
        let target = ready.target.clone();
        let written = tokio::task::spawn_blocking(move || write(&target, &component)).await;
        written.map_err(|error| not_written(&ready.target, &error.to_string()))??;
        self.await_installed(name, &ready.target, ready.checked.info.digest).await?;
        Ok(ready.checked)
    }

    async fn remove(&self, name: &PluginName) -> Result<(), Failure> {
        let _installing = self.inner.begin_install()?;
        let target = self.inner.installed_file(name)?;
        let file = target.clone();
        let removed = tokio::task::spawn_blocking(move || remove(&file)).await;
        removed.map_err(|error| not_removed(&target, &error.to_string()))??;
        self.log_later(self.refresh().await);
        Ok(())
    }
}

/// A component that can be installed.
struct ReadyPlugin {
    checked: CheckedPlugin,
    /// The file of the plugin.
    target: PathBuf,
    /// The loaded component. Holding it keeps its code in memory.
    _code: Arc<dyn Plugin>,
}

impl Loader {
    /// Begins to load an installed file, and waits until its plugin is in use.
    async fn await_installed(
        &self,
        name: &PluginName,
        target: &Path,
        digest: Digest,
    ) -> Result<(), Failure> {
        let mut loaded = self.inner.catalog.watch_loaded();
        self.log_later(self.refresh().await);
        loop {
            loaded.mark_unchanged();
            // A load that has ended has installed the plugin, so the load is looked at first.
            let is_loading = self.inner.state().is_loading(target);
            if self.inner.installed_digest(name) == Some(digest) {
                return Ok(());
            }
            if !is_loading {
                return Err(self.inner.not_loaded(name, target));
            }
            if loaded.changed().await.is_err() {
                return Err(Failure::internal("the host stops"));
            }
        }
    }

    /// Logs changes as they happen.
    fn log_later(&self, mut changes: Changes) {
        self.inner.spawn(async move {
            while let Some(change) = changes.next().await {
                change.log();
            }
        });
    }
}

impl LoaderInner {
    /// Begins the only installation.
    fn begin_install(&self) -> Result<MutexGuard<'_, ()>, Failure> {
        self.installing.try_lock().map_err(|_installing| {
            let text = "the host checks, installs or removes another plugin; try again when it has \
                        ended";
            Failure::new(code::BUSY, text).retryable()
        })
    }

    async fn check_component(
        &self,
        name: &PluginName,
        component: Bytes,
    ) -> Result<ReadyPlugin, Failure> {
        if let Some(problem) = names::problem("plugin name", name.as_str()) {
            return Err(Failure::new(code::INVALID, problem.to_string()));
        }
        let target = self.file_for(name)?;
        let plugin = self.load_component(name, &target, component).await?;
        let info = plugin.info().clone();
        let GrantDecision { grants, request } = self.decide_standalone(&info);
        let replaces = self.installed_digest(name);
        let checked = CheckedPlugin { info, grants, request, replaces };
        Ok(ReadyPlugin { checked, target, _code: plugin })
    }

    /// Loads a component in the turns that it shares with the loads of files.
    async fn load_component(
        &self,
        name: &PluginName,
        target: &Path,
        component: Bytes,
    ) -> Result<Arc<dyn Plugin>, Failure> {
        let mut turn = self.permits.first_turn().await;
        loop {
            let sandbox = self.sandbox.as_ref();
            let loaded = turn.load(sandbox, name, target, component.clone()).await;
            match loaded {
                Ok(Some(plugin)) => return Ok(plugin),
                Ok(None) => turn = self.permits.next_turn(turn.end()).await,
                Err(error) => return Err(refused(&error)),
            }
        }
    }

    /// Returns the file for a plugin with a name that nothing else has.
    fn file_for(&self, name: &PluginName) -> Result<PathBuf, Failure> {
        let target = resolve_links(&self.config.plugins).join(format!("{name}.wasm"));
        let state = self.state();
        if let Some(other) = state.files_of_plugin(name).find(|file| *file != target) {
            return Err(conflict(&format!(
                "the plugin `{name}` is in `{}`; replace that file, or choose another name",
                other.display()
            )));
        }
        // `[grants.<name>]` would no longer belong to the component of the app.
        let mut apps = state.folders.values().flatten().chain(state.apps.values());
        if apps.any(|app| app.as_str() == name.as_str()) {
            return Err(conflict(&format!("an app is called `{name}`; choose another name")));
        }
        Ok(target)
    }

    /// Returns the file of a standalone plugin that can be removed.
    fn installed_file(&self, name: &PluginName) -> Result<PathBuf, Failure> {
        let file = self.state().files_of_plugin(name).next().map(Path::to_owned);
        let Some(file) = file else {
            let text = format!("there is no standalone plugin `{name}` in the plugins folder");
            return Err(Failure::new(code::NOT_FOUND, text));
        };
        if file.parent() != Some(resolve_links(&self.config.plugins).as_path()) {
            return Err(conflict(&format!(
                "the plugin `{name}` is in `{}`; remove that file yourself",
                file.display()
            )));
        }
        let digest = self.installed_digest(name);
        let uses = |plugin: &Arc<dyn Plugin>| Some(plugin.info().digest) == digest;
        let apps = self.catalog.apps();
        match apps.iter().find(|app| app.plugins.get(name).is_some_and(uses)) {
            Some(app) => Err(conflict(&format!(
                "the app `{}` uses the plugin `{name}`; take the plugin out of its graphs and tools \
                 first",
                app.name
            ))),
            None => Ok(file),
        }
    }

    /// Returns the digest of the standalone plugin that is in use.
    fn installed_digest(&self, name: &PluginName) -> Option<Digest> {
        self.standalone.all().get(name).map(|plugin| plugin.info().digest)
    }

    /// Returns the failure of a file that was written and is not loaded.
    fn not_loaded(&self, name: &PluginName, target: &Path) -> Failure {
        let problems = self.catalog.problems();
        let found = problems.into_iter().find(|problem| problem.path == target);
        let reason = found.map_or_else(|| "another file replaced it".to_owned(), |it| it.message);
        conflict(&format!("the plugin `{name}` was written and is not in use: {reason}"))
    }
}

fn conflict(text: &str) -> Failure {
    Failure::new(code::CONFLICT, text)
}

/// Returns the failure of a component that cannot be loaded.
fn refused(error: &LoadError) -> Failure {
    let details = json!({ "reason": error.code, "message": error.message, "hint": error.hint });
    Failure::new(code::INVALID, error.to_string()).with_details(details)
}

fn not_written(target: &Path, error: &str) -> Failure {
    Failure::internal(format!("cannot write `{}`: {error}", target.display()))
}

fn not_removed(target: &Path, error: &str) -> Failure {
    Failure::internal(format!("cannot remove `{}`: {error}", target.display()))
}

/// Writes a component. If this fails, the file remains as it was.
fn write(target: &Path, component: &[u8]) -> Result<(), Failure> {
    let folder = target.parent().unwrap_or(target);
    let failed = |error: &io::Error| not_written(target, &error.to_string());
    fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    check_kind(target)?;
    replace(folder, target, component).map_err(|error| failed(&error))
}

fn remove(target: &Path) -> Result<(), Failure> {
    check_kind(target)?;
    fs::remove_file(target).map_err(|error| not_removed(target, &error.to_string()))
}

/// Checks that nothing is at a path, or a regular file. A link of the operator stays as it is.
fn check_kind(target: &Path) -> Result<(), Failure> {
    match target.symlink_metadata() {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => Err(conflict(&format!(
            "`{}` is no regular file; remove it, or choose another name",
            target.display()
        ))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(not_written(target, &error.to_string())),
    }
}

/// Writes a new file and puts it in the place of another one. A rename does not follow links.
fn replace(folder: &Path, target: &Path, component: &[u8]) -> io::Result<()> {
    let mut draft = tempfile::Builder::new().prefix(DRAFT_PREFIX).tempfile_in(folder)?;
    draft.write_all(component)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        draft.as_file().set_permissions(fs::Permissions::from_mode(FILE_MODE))?;
    }
    draft.as_file().sync_all()?;
    draft.persist(target).map_err(|failed| failed.error)?;
    sync_folder(folder)
}

/// Makes a rename in a folder durable. Only Unix opens folders.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_written_file_replaces_the_one_before_and_leaves_no_draft() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("plugins");
        let target = folder.join("shared.wasm");
        for content in ["one", "another"] {
            write(&target, content.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&target).unwrap(), content);
        }
        assert_eq!(names(&folder), ["shared.wasm"]);
        remove(&target).unwrap();
        assert!(names(&folder).is_empty());
    }

    #[test]
    fn what_is_no_regular_file_is_neither_replaced_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("shared.wasm");
        fs::create_dir(&target).unwrap();
        for refused in [write(&target, b"x"), remove(&target)] {
            assert_eq!(refused.unwrap_err().code, code::CONFLICT);
        }
        assert_eq!(names(folder.path()), ["shared.wasm"]);
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_written_through_a_link() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (target, secret) = (folder.path().join("a.wasm"), outside.path().join("secret"));
        fs::write(&secret, "kept").unwrap();
        std::os::unix::fs::symlink(&secret, &target).unwrap();
        for refused in [write(&target, b"x"), remove(&target)] {
            assert_eq!(refused.unwrap_err().code, code::CONFLICT);
        }
        assert_eq!(fs::read_to_string(&secret).unwrap(), "kept");
        // A link that appears after the check is replaced, and its target stays.
        replace(folder.path(), &target, b"x").unwrap();
        assert_eq!(fs::read_to_string(&secret).unwrap(), "kept");
        assert!(target.symlink_metadata().unwrap().is_file());
    }
}
