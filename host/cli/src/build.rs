//! Builds the components of an app, as `[build]` of its `app.toml` says.

mod lock;
mod prepare;
mod process;

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wattle_graph::id::PluginName;
use wattle_run::ports::sandbox::PluginInfo;
use wattle_run::ports::{Plugin, Sandbox};

use crate::error::Error;
use crate::load::file::{COMPONENT_BYTES, FilePlace};
use crate::load::manifest::build::BuildTable;
use crate::load::manifest::{FILE, Manifest};
use crate::load::places::Turn;
use crate::load::plugin_file;
use crate::scaffold::sdk;

/// The folder in an app's folder with everything that builds make. It is hidden, so a host neither
/// loads nor watches what is in it.
pub(crate) const WORK_FOLDER: &str = ".wattle";

/// The folder of the SDK, in [`WORK_FOLDER`].
const SDK_FOLDER: &str = "sdk";

/// An app whose components can be built.
pub(crate) struct AppBuild {
    folder: PathBuf,
    manifest: Manifest,
    table: BuildTable,
}

/// A component that was built.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Component {
    /// Name of the component in its app.
    pub(crate) name: String,
    /// The file that the app loads.
    pub(crate) file: PathBuf,
    /// Size of the file in bytes.
    pub(crate) bytes: u64,
    /// True if the file is another one than before.
    pub(crate) changed: bool,
    /// Names of its nodes.
    pub(crate) nodes: Vec<String>,
    /// Names of its tools.
    pub(crate) tools: Vec<String>,
    /// Names of its reducers.
    pub(crate) reducers: Vec<String>,
    /// Its endpoints.
    pub(crate) routes: Vec<String>,
}

impl AppBuild {
    /// Reads how the app in a folder is built.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] for a manifest with problems, and [`Error::Usage`] for one without
    /// `[build]`.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let manifest = Manifest::read(folder).map_err(Error::Failed)?;
        let table = manifest.build.clone().ok_or_else(|| Error::Usage {
            message: format!("`{}` has no `[build]`", folder.join(FILE).display()),
            hint: "add one with the `commands` that build the components and the `outputs` that \
                   they make; `wattle new` shows one"
                .into(),
        })?;
        Ok(Self { folder: folder.to_owned(), manifest, table })
    }

    /// Returns the files and folders whose changes require a new build.
    pub(crate) fn watched(&self) -> Vec<PathBuf> {
        let inputs = self.table.watch.iter().chain(&self.table.prepare_inputs);
        inputs.map(|path| self.folder.join(path)).collect()
    }

    /// Builds the components, and puts each into its place once the sandbox has loaded it. The
    /// commands print to stderr. Waits while another process builds the app. Dropping the future ends
    /// the running command.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if a command fails or makes no component that can be loaded; the app then
    /// has the components from before.
    pub(crate) async fn build(&self, sandbox: &dyn Sandbox) -> Result<Vec<Component>, Error> {
        let work = self.folder.join(WORK_FOLDER);
        let _lock = lock::take(&work).await?;
        let sdk = self.table.sdk.map(|language| sdk::unpack(language, &work.join(SDK_FOLDER)));
        let sdk = sdk.transpose()?;
        prepare::prepare(&self.folder, &self.table, sdk, &work).await?;
        for command in &self.table.commands {
            process::run(&self.folder, &self.table.env, command).await?;
        }
        let mut built = Vec::new();
        for (name, output) in &self.table.outputs {
            built.push(self.install(name, &self.folder.join(output), sandbox).await?);
        }
        Ok(built)
    }

    /// Puts a built file into the place of a component. An equal file is not written again, because
    /// a running host reloads a changed file.
    async fn install(
        &self,
        name: &PluginName,
        output: &Path,
        sandbox: &dyn Sandbox,
    ) -> Result<Component, Error> {
        if !output.is_file() {
            return Err(Error::Failed(format!(
                "the build made no `{}`\n  hint: `outputs` under `[build]` in {FILE} names the \
                 files that the commands make",
                output.display()
            )));
        }
        let place = FilePlace::Named(output.to_owned());
        let loaded = plugin_file::load_as(sandbox, name, &place, &mut Turn::unlimited()).await;
        // A turn without limits compiles every component.
        let plugin = loaded
            .map_err(Error::Failed)?
            .ok_or_else(|| Error::Failed(format!("`{}` was not compiled", output.display())))?;
        let bytes = place.read(COMPONENT_BYTES).map_err(|it| Error::Failed(it.to_string()))?;
        let file = match self.manifest.components.get(name) {
            Some(file) => self.folder.join(file),
            // The manifest has only outputs of its components.
            None => output.to_owned(),
        };
        let changed = fs::read(&file).ok().is_none_or(|before| before != bytes);
        if changed {
            put(&file, &bytes)?;
        }
        Ok(Component::new(plugin.as_ref(), file, bytes.len(), changed))
    }
}

/// Writes a file at once, so that a host that watches the folder never reads a part of it.
fn put(file: &Path, bytes: &[u8]) -> Result<(), Error> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
    }
    let draft = file.with_extension("wasm.part");
    fs::write(&draft, bytes).map_err(Error::file("write", &draft))?;
    fs::rename(&draft, file).map_err(Error::file("write", file))
}

impl Component {
    fn new(plugin: &dyn Plugin, file: PathBuf, bytes: usize, changed: bool) -> Self {
        let PluginInfo { name, nodes, tools, reducers, routes, .. } = plugin.info();
        Self {
            name: name.to_string(),
            file,
            bytes: bytes as u64,
            changed,
            nodes: nodes.iter().map(|node| node.name.clone()).collect(),
            tools: tools.iter().map(|tool| tool.name.clone()).collect(),
            reducers: reducers.iter().map(|reducer| reducer.name.clone()).collect(),
            routes: routes.iter().map(|it| format!("{} {}", it.method, it.path)).collect(),
        }
    }
}
