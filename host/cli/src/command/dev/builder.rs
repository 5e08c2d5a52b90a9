//! Builds an app when its sources have changed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use wattle_run::ports::Sandbox;

use crate::build::{AppBuild, sources};
use crate::command::build::render_components;
use crate::error::Error;
use crate::load::manifest::{FILE, Manifest};
use crate::load::watcher::Watcher;
use crate::output::Output;

/// Size and modification time of each source file.
type Fingerprint = BTreeMap<PathBuf, (u64, SystemTime)>;

/// Builds an app, and remembers the fingerprint of its sources.
pub(super) struct Builder {
    folder: PathBuf,
    sandbox: Arc<dyn Sandbox>,
    /// Fingerprint of the sources of the last build, whether or not it succeeded.
    built: Option<Fingerprint>,
}

impl Builder {
    pub(super) fn new(folder: PathBuf, sandbox: Arc<dyn Sandbox>) -> Self {
        Self { folder, sandbox, built: None }
    }

    /// Watches the folder of the app, and its sources in other folders.
    pub(super) fn watch(&self, watcher: &mut Watcher) {
        watcher.watch_app(&self.folder);
        for source in self.sources() {
            let folder = if source.is_dir() { Some(source.as_path()) } else { source.parent() };
            if let Some(folder) = folder.filter(|folder| !folder.starts_with(&self.folder)) {
                watcher.watch_app(folder);
            }
        }
    }

    /// Builds the app, unless its sources are unchanged since the last build. Prints the error of a
    /// failed build. After a failed build, the previous components remain.
    pub(super) async fn build(&mut self) {
        // A source that changes during the build requires another build.
        let fingerprint = self.fingerprint();
        if self.built.as_ref() == Some(&fingerprint) {
            return;
        }
        self.built = Some(fingerprint);
        if let Err(error) = self.build_now().await {
            Output::error(&format!("{error}\n  the app keeps its previous components"));
        }
    }

    async fn build_now(&self) -> Result<(), Error> {
        // An app without `[build]` is only loaded, because its component is built in another way.
        if Manifest::read(&self.folder).map_err(Error::Failed)?.build.is_none() {
            return Ok(());
        }
        Output::note(&format!("building `{}`", self.folder.display()));
        let build = AppBuild::open(&self.folder)?;
        let components = build.build(self.sandbox.as_ref(), false).await?;
        Output::note(&render_components(&components));
        Ok(())
    }

    fn sources(&self) -> Vec<PathBuf> {
        let build = AppBuild::open(&self.folder);
        let watched = build.map(|build| build.watched()).unwrap_or_default();
        watched.into_iter().chain([self.folder.join(FILE)]).collect()
    }

    fn fingerprint(&self) -> Fingerprint {
        fingerprint_of(&self.sources())
    }
}

fn fingerprint_of(watched: &[PathBuf]) -> Fingerprint {
    let mut fingerprint = Fingerprint::new();
    for path in watched {
        sources::visit(path, &mut |file, metadata| {
            if metadata.is_file() {
                let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                fingerprint.insert(file.to_owned(), (metadata.len(), modified));
            }
        });
    }
    fingerprint
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn sources_have_changed_if_a_file_has() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::create_dir_all(folder.join("src/deep")).unwrap();
        fs::create_dir_all(folder.join("src/__pycache__")).unwrap();
        fs::write(folder.join("src/deep/a.py"), "1").unwrap();
        let fingerprint = || fingerprint_of(&[folder.join("src")]);
        let before = fingerprint();
        assert_eq!(before.len(), 1);
        fs::write(folder.join("src/__pycache__/a.pyc"), "").unwrap();
        fs::write(folder.join("src/.hidden"), "").unwrap();
        // Cargo marks its target folder. A folder of sources may have the same name.
        fs::create_dir_all(folder.join("src/target")).unwrap();
        fs::write(folder.join("src/target/CACHEDIR.TAG"), "").unwrap();
        assert_eq!(fingerprint(), before);
        fs::write(folder.join("src/deep/a.py"), "12").unwrap();
        assert_ne!(fingerprint(), before);
    }

    #[cfg(unix)]
    #[test]
    fn sources_behind_a_link_have_changed_if_a_file_has() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let (app, code) = (folder.path().join("app"), folder.path().join("code"));
        let manifest = "[app]\nname = \"notes\"\nversion = \"1\"\n[components]\nnotes = \"a.wasm\"\n\
                        [build]\ncommands = [[\"make\"]]\noutputs = { notes = \"out.wasm\" }\n\
                        watch = [\"src\", \"Makefile\", \"missing\"]\n";
        for folder in [&app, &code] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(app.join("app.toml"), manifest).unwrap();
        symlink(&code, app.join("src")).unwrap();
        symlink(code.join("Makefile"), app.join("Makefile")).unwrap();
        let fingerprint = || fingerprint_of(&AppBuild::open(&app).unwrap().watched());
        assert!(fingerprint().is_empty());
        for (count, name) in (1..).zip(["a.c", "Makefile"]) {
            fs::write(code.join(name), "1").unwrap();
            let before = fingerprint();
            assert_eq!(before.len(), count, "{before:?}");
            fs::write(code.join(name), "12").unwrap();
            assert_ne!(fingerprint(), before);
        }
    }
}
