//! Archived versions of apps in the data folder. A thread continues with the code of its first run,
//! even if the code was replaced and the host has restarted since then.
//!
//! `versions/<app>/<digest>` contains the files of a version: `app.toml`, its graphs, its
//! components, and `index.json` with the digests to which threads are pinned. The next start
//! deletes a version to which no thread is pinned. While damaged threads are set aside, it deletes
//! no version, because the versions of these threads are unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use wattle_graph::id::{AppName, Digest, GraphName, PluginName};
use wattle_graph::limit::DOCUMENT_TEXT_BYTES;
use wattle_run::app::App;
use wattle_run::export::{CodeFile, CompressedBytes};

use crate::config::{Config, StoreKind};
use crate::data_folder::VERSIONS_FOLDER;
use crate::load::app_request::AppRequest;
use crate::load::file::{
    self, COMPONENT_BYTES, DOCUMENT_BYTES, FileLocation, MANIFEST_BYTES, TotalSize,
};
use crate::load::manifest::{self, ComponentFiles, Manifest};
use crate::load::text_files;

/// File with the digests of a version.
const INDEX: &str = "index.json";

/// Number of digits of the digest in the name of a version's folder.
const NAME_DIGITS: usize = 32;

#[derive(Debug, Serialize, Deserialize)]
struct Index {
    app: AppName,
    versions: BTreeSet<Digest>,
    /// The version of each graph. The map is empty if an older host wrote the index.
    #[serde(default)]
    graphs: BTreeMap<GraphName, Digest>,
    components: BTreeSet<PluginName>,
}

/// An archived version.
pub(super) struct ArchivedVersion {
    /// Folder of the version, with the layout of an app folder.
    pub(super) folder: PathBuf,
    index: Index,
}

impl ArchivedVersion {
    /// Returns the app.
    pub(super) fn app(&self) -> &AppName {
        &self.index.app
    }

    /// Returns the versions of the graphs, each with the name of its graph. The name is unknown if
    /// an older host archived the version.
    pub(super) fn versions(&self) -> impl Iterator<Item = (Digest, Option<GraphName>)> {
        let Index { versions, graphs, .. } = &self.index;
        versions.iter().map(move |version| {
            let named = graphs.iter().find(|(_, own)| *own == version);
            (*version, named.map(|(graph, _)| graph.clone()))
        })
    }

    /// Returns the components of the app, and the components of standalone plugins that its graphs
    /// use.
    pub(super) fn files(&self, manifest: &Manifest) -> (ComponentFiles, ComponentFiles) {
        let location = |name: &PluginName| {
            let (folder, path) = (self.folder.clone(), component_file(name).into());
            (name.clone(), FileLocation::Inside { folder, path })
        };
        let all = self.index.components.iter().map(location);
        all.partition(|(name, _)| manifest.components.contains_key(name))
    }

    /// Reads the manifest. Its paths of components and migrations are ignored, because they can
    /// point outside of the folder.
    ///
    /// # Errors
    ///
    /// A message, also if the manifest names graphs outside of the folder.
    pub(super) fn manifest(&self) -> Result<Manifest, String> {
        let manifest = Manifest::read(&self.folder)?;
        let graphs = &manifest.app.graphs;
        if is_inside(graphs) {
            return Ok(manifest);
        }
        Err(format!(
            "{}: the graphs `{}` lie outside of its folder",
            manifest::FILE,
            graphs.display()
        ))
    }

    /// Returns what the app requests; `None` if its manifest is invalid.
    pub(super) fn request(&self) -> Option<AppRequest> {
        self.manifest().ok().map(|manifest| manifest.request())
    }
}

fn component_file(plugin: &PluginName) -> String {
    format!("{plugin}.wasm")
}

/// Archives a newly installed version. Returns its folder. A failure is only logged, because the
/// version can be used without the archive.
pub(super) fn save(
    config: &Config,
    app: &App,
    manifest: &Manifest,
    folder: &Path,
    files: &ComponentFiles,
) -> Option<PathBuf> {
    // With an in-memory store, no thread outlives the process, so no version is archived.
    if config.store.kind == StoreKind::Memory {
        return None;
    }
    let copied = copy(config, app, manifest, folder, files);
    let report = |error: io::Error| {
        tracing::warn!(
            app = %app.name, %error,
            "cannot archive the version: its threads cannot resume after it is replaced"
        );
    };
    copied.map_err(report).ok()
}

fn copy(
    config: &Config,
    app: &App,
    manifest: &Manifest,
    folder: &Path,
    files: &ComponentFiles,
) -> io::Result<PathBuf> {
    let target = folder_of(config, app);
    if target.join(INDEX).is_file() {
        return Ok(target);
    }
    // The files are written to a draft folder, which is renamed when it is complete.
    let draft = target.with_extension("draft");
    // An interrupted copy can leave either folder behind.
    let _ = fs::remove_dir_all(&draft);
    unpack(&collect_files(app, manifest, folder, files)?, &draft)?;
    let _ = fs::remove_dir_all(&target);
    fs::rename(&draft, &target)?;
    Ok(target)
}

fn folder_of(config: &Config, app: &App) -> PathBuf {
    let versions = config.data.join(VERSIONS_FOLDER).join(app.name.as_str());
    versions.join(&app.digest.to_hex()[..NAME_DIGITS])
}

/// Returns the files of an installed version, from the archive or from the folder from which it was
/// loaded.
///
/// # Errors
///
/// An error if a file was deleted or has changed since it was loaded.
pub(super) fn files(
    config: &Config,
    app: &App,
    loaded: Option<(&Manifest, &Path, &ComponentFiles)>,
) -> io::Result<Vec<CodeFile>> {
    if let Some(archived) = read(folder_of(config, app)) {
        let manifest = archived.manifest().map_err(|message| invalid(&message))?;
        let (own, others) = archived.files(&manifest);
        let components = own.into_iter().chain(others).collect();
        return collect_files(app, &manifest, &archived.folder, &components);
    }
    let Some((manifest, folder, components)) = loaded else {
        return Err(invalid("its files are not archived"));
    };
    collect_files(app, manifest, folder, components)
}

/// Reads the files of a version, in the layout of the archive.
fn collect_files(
    app: &App,
    manifest: &Manifest,
    folder: &Path,
    components: &ComponentFiles,
) -> io::Result<Vec<CodeFile>> {
    let graphs = &manifest.app.graphs;
    if !is_inside(graphs) {
        return Err(invalid("its graphs lie outside its folder"));
    }
    let graphs = graphs.to_str().ok_or_else(|| invalid("the path of its graphs is not UTF-8"))?;
    let mut files = Vec::new();
    let graphs = manifest.has_graphs(folder).then_some(graphs);
    let read = |path: &str, bytes| {
        file::read_text(folder, Path::new(path), bytes).map_err(|error| invalid(&error.to_string()))
    };
    files.push(code_file(manifest::FILE, read(manifest::FILE, MANIFEST_BYTES)?.into_bytes()));
    if let Some(graphs) = graphs {
        let text = read(graphs, DOCUMENT_BYTES)?;
        files.push(code_file(graphs, text.clone().into_bytes()));
        let mut total = TotalSize::new("the texts of its graphs", DOCUMENT_TEXT_BYTES as u64);
        for path in text_files::referenced_files(&text) {
            let bytes = text_files::read(folder, &path).map_err(|message| invalid(&message))?;
            total.add(bytes.len() as u64).map_err(|error| invalid(&error.to_string()))?;
            files.push(code_file(&path, bytes.into_bytes()));
        }
    }
    for (name, plugin) in &app.plugins {
        let location = components.get(name).ok_or_else(|| invalid("a component has no file"))?;
        let bytes = location.read(COMPONENT_BYTES).map_err(|error| invalid(&error.to_string()))?;
        if Digest::of(&bytes) != plugin.info().digest {
            return Err(invalid("a component has changed since it was loaded"));
        }
        files.push(code_file(&component_file(name), bytes));
    }
    let index = Index {
        app: app.name.clone(),
        versions: app.graphs.values().map(|graph| graph.version).collect(),
        graphs: app.graphs.iter().map(|(name, graph)| (name.clone(), graph.version)).collect(),
        components: app.plugins.keys().cloned().collect(),
    };
    files.push(code_file(INDEX, serde_json::to_vec_pretty(&index)?));
    Ok(files)
}

fn code_file(path: &str, bytes: Vec<u8>) -> CodeFile {
    CodeFile { path: path.replace('\\', "/"), bytes: CompressedBytes(bytes.into()) }
}

/// Writes the files of a version to a folder.
///
/// # Errors
///
/// An error if a file cannot be written, or if its path points outside of the folder.
pub(super) fn unpack(files: &[CodeFile], folder: &Path) -> io::Result<()> {
    for file in files {
        if !is_inside(Path::new(&file.path)) {
            return Err(invalid(&format!("`{}` lies outside of its folder", file.path)));
        }
        let path = folder.join(&file.path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, &*file.bytes)?;
    }
    Ok(())
}

fn is_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Partitions the archived versions into those to which threads are pinned, and all other versions.
pub(super) fn partition_pinned(
    config: &Config,
    pinned: &BTreeSet<(AppName, Digest)>,
) -> (Vec<ArchivedVersion>, Vec<ArchivedVersion>) {
    let is_pinned = |archived: &ArchivedVersion| {
        archived
            .index
            .versions
            .iter()
            .any(|version| pinned.contains(&(archived.index.app.clone(), *version)))
    };
    all(config).into_iter().partition(is_pinned)
}

/// Deletes archived versions.
pub(super) fn delete(versions: Vec<ArchivedVersion>) {
    for archived in versions {
        if let Err(error) = fs::remove_dir_all(&archived.folder) {
            tracing::debug!(%error, "cannot delete an unused archived version");
        }
    }
}

/// Returns all archived versions.
pub(super) fn all(config: &Config) -> Vec<ArchivedVersion> {
    let apps = subfolders(&config.data.join(VERSIONS_FOLDER));
    apps.iter().flat_map(|app| subfolders(app)).filter_map(read).collect()
}

/// Reads the version in a folder. Returns `None` if the folder contains no complete version.
pub(super) fn read(folder: PathBuf) -> Option<ArchivedVersion> {
    let index = serde_json::from_slice(&fs::read(folder.join(INDEX)).ok()?).ok()?;
    Some(ArchivedVersion { folder, index })
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn file(path: &str, text: &str) -> CodeFile {
        code_file(path, text.as_bytes().to_vec())
    }

    #[test]
    fn files_outside_of_the_folder_are_refused() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("code");
        for path in ["../out.txt", "/tmp/out.txt", "graphs/../../out.txt", ".."] {
            let code = CodeFile { path: path.to_owned(), bytes: CompressedBytes(Bytes::new()) };
            let error = unpack(&[code], &folder).unwrap_err();
            assert!(error.to_string().contains("outside"), "{error}");
        }
        unpack(&[file("graphs/main.toml", "x")], &folder).unwrap();
        assert_eq!(fs::read_to_string(folder.join("graphs/main.toml")).unwrap(), "x");
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1);
    }

    #[test]
    fn versions_that_no_thread_is_pinned_to_are_deleted() {
        let base = tempfile::tempdir().unwrap();
        let config = Config::in_folder(base.path());
        let (pinned, free) = (Digest::of(b"pinned"), Digest::of(b"free"));
        for version in [pinned, free] {
            let index = format!(
                r#"{{ "app": "asset", "versions": ["{}"], "components": [] }}"#,
                version.to_hex()
            );
            let folder = config.data.join(VERSIONS_FOLDER).join("asset").join(version.to_hex());
            unpack(&[file(INDEX, &index)], &folder).unwrap();
        }
        let pinned = BTreeSet::from([(AppName::new("asset").unwrap(), pinned)]);
        let (pinned_versions, rest) = partition_pinned(&config, &pinned);
        assert_eq!((pinned_versions.len(), rest.len()), (1, 1));
        assert!(
            pinned_versions[0].folder.exists() && rest[0].folder.exists(),
            "nothing is deleted yet"
        );
        let folder = rest[0].folder.clone();
        delete(rest);
        assert!(pinned_versions[0].folder.exists() && !folder.exists());
    }

    #[test]
    fn graphs_outside_of_the_folder_are_refused() {
        let read = |graphs: &str| {
            let folder = tempfile::tempdir().unwrap();
            let app = format!("[app]\nname = \"asset\"\nversion = \"1\"\ngraphs = \"{graphs}\"");
            let index = r#"{ "app": "asset", "versions": [], "components": [] }"#;
            unpack(&[file(manifest::FILE, &app), file(INDEX, index)], folder.path()).unwrap();
            super::read(folder.path().to_owned()).unwrap().manifest()
        };
        assert_eq!(read("graphs/main.toml").unwrap().app.name.as_str(), "asset");
        for outside in ["../../graph.toml", "/etc/passwd", "graphs/../../graph.toml"] {
            let refused = read(outside).unwrap_err();
            assert!(refused.contains("outside of its folder"), "{refused}");
        }
    }
}
