//! Builds an app whenever its sources have changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use wattle_run::ports::Sandbox;

use crate::build::AppBuild;
use crate::command::build::in_words;
use crate::error::Error;
use crate::load::manifest::{FILE, Manifest};
use crate::load::watcher::{Watcher, is_left_out};
use crate::output::Output;

/// Folders that toolchains write beside sources.
const WRITTEN: [&str; 2] = ["__pycache__", "target"];

/// Size and time of each source.
type Print = BTreeMap<PathBuf, (u64, SystemTime)>;

/// Builds an app, and knows from which sources.
pub(super) struct Builder {
    folder: PathBuf,
    sandbox: Arc<dyn Sandbox>,
    /// The sources of the last build, whether or not it succeeded.
    built: Option<Print>,
}

impl Builder {
    pub(super) fn new(folder: PathBuf, sandbox: Arc<dyn Sandbox>) -> Self {
        Self { folder, sandbox, built: None }
    }

    /// Watches the app, and sources of it elsewhere.
    pub(super) fn watch(&self, watcher: &mut Watcher) {
        watcher.watch_app(&self.folder);
        for source in self.sources() {
            let folder = if source.is_dir() { Some(source.as_path()) } else { source.parent() };
            if let Some(folder) = folder.filter(|folder| !folder.starts_with(&self.folder)) {
                watcher.watch_app(folder);
            }
        }
    }

    /// Builds the app, unless its sources are those of the last build. Prints why it cannot be
    /// built; the app then stays as it is.
    pub(super) async fn build(&mut self) {
        // A source that changes during the build makes another build necessary.
        let print = self.print();
        if self.built.as_ref() == Some(&print) {
            return;
        }
        self.built = Some(print);
        if let Err(error) = self.build_now().await {
            Output::error(&format!("{error}\n  the app stays as it was before"));
        }
    }

    async fn build_now(&self) -> Result<(), Error> {
        // An app whose component is built by other means is only loaded.
        if Manifest::read(&self.folder).map_err(Error::Failed)?.build.is_none() {
            return Ok(());
        }
        Output::note(&format!("building `{}`", self.folder.display()));
        let components = AppBuild::open(&self.folder)?.build(self.sandbox.as_ref()).await?;
        Output::note(&in_words(&components));
        Ok(())
    }

    fn sources(&self) -> Vec<PathBuf> {
        let build = AppBuild::open(&self.folder);
        let watched = build.map(|build| build.watched()).unwrap_or_default();
        watched.into_iter().chain([self.folder.join(FILE)]).collect()
    }

    fn print(&self) -> Print {
        print_of(&self.sources())
    }
}

fn print_of(sources: &[PathBuf]) -> Print {
    let mut print = Print::new();
    for source in sources {
        add(&mut print, source);
    }
    print
}

/// Adds a file, or the files of a folder. Symbolic links are not followed, since they may lead round
/// in a circle.
fn add(print: &mut Print, path: &Path) {
    let Ok(facts) = path.symlink_metadata() else { return };
    if facts.is_file() {
        let modified = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        print.insert(path.to_owned(), (facts.len(), modified));
    }
    if !facts.is_dir() {
        return;
    }
    // A folder that cannot be read has no sources.
    for entry in path.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !is_left_out(&name) && !WRITTEN.iter().any(|written| *written == name) {
            add(print, &entry.path());
        }
    }
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
        let print = || print_of(&[folder.join("src")]);
        let before = print();
        assert_eq!(before.len(), 1);
        fs::write(folder.join("src/__pycache__/a.pyc"), "").unwrap();
        fs::write(folder.join("src/.hidden"), "").unwrap();
        assert_eq!(print(), before);
        fs::write(folder.join("src/deep/a.py"), "12").unwrap();
        assert_ne!(print(), before);
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
        let print = || print_of(&AppBuild::open(&app).unwrap().watched());
        assert!(print().is_empty());
        for (count, name) in (1..).zip(["a.c", "Makefile"]) {
            fs::write(code.join(name), "1").unwrap();
            let before = print();
            assert_eq!(before.len(), count, "{before:?}");
            fs::write(code.join(name), "12").unwrap();
            assert_ne!(print(), before);
        }
    }
}
