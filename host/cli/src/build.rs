//! Builds the components of an app with the commands in `[build]` of its `app.toml`.

mod lock;
mod prepare;
mod process;
mod record;
pub(crate) mod sources;

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::Serialize;
use wattle_graph::id::{Digest, PluginName};
use wattle_run::ports::sandbox::PluginInfo;
use wattle_run::ports::{Plugin, Sandbox};

use crate::build::process::CommandFailure;
use crate::error::Error;
use crate::load::file::FileLocation;
use crate::load::manifest::build::BuildTable;
use crate::load::manifest::{FILE, Manifest};
use crate::load::plugin_file;
use crate::load::turns::Turn;
use crate::output::Output;
use crate::paths::canonical;
use crate::scaffold::sdk;

/// Folder in the folder of an app for the files of builds. The folder is hidden, so that a host
/// neither loads nor watches its files.
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
    /// True if the build has changed the file.
    pub(crate) changed: bool,
    /// Names of the component's nodes.
    pub(crate) nodes: Vec<String>,
    /// Names of the component's tools.
    pub(crate) tools: Vec<String>,
    /// Names of the component's reducers.
    pub(crate) reducers: Vec<String>,
    /// Endpoints of the component.
    pub(crate) routes: Vec<String>,
}

impl AppBuild {
    /// Reads how the app in a folder is built.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] for a manifest with problems, and [`Error::Usage`] for a manifest without
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

    /// Returns the files and folders whose changes require a new build. Symbolic links are
    /// resolved.
    pub(crate) fn watched(&self) -> Vec<PathBuf> {
        let inputs = self.table.watch.iter().chain(&self.table.prepare_inputs);
        let inputs = inputs.map(|path| self.folder.join(path));
        // An entry that does not exist yet cannot be resolved, and is returned unchanged.
        inputs.map(|path| canonical(&path)).collect()
    }

    /// Builds the components, and replaces those of the app when the sandbox has loaded all of
    /// them. The commands print to stderr. If nothing has changed since the last build, they do not
    /// run, unless `force` is true. Waits while another process builds the app. Dropping the future
    /// kills the running command.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if a command fails or an output cannot be loaded. The app then keeps its
    /// components.
    pub(crate) async fn build(
        &self,
        sandbox: &dyn Sandbox,
        force: bool,
    ) -> Result<Vec<Component>, Error> {
        let work = self.folder.join(WORK_FOLDER);
        let _lock = lock::take(&work).await?;
        let sdk = self.table.sdk.map(|language| sdk::unpack(language, &work.join(SDK_FOLDER)));
        let sdk = sdk.transpose()?;
        prepare::prepare(&self.folder, &self.table, sdk, &work).await?;
        // A source that changes while the commands run requires another build, so the digest is
        // computed before.
        let inputs = record::inputs(&self.table, &self.watched(), sdk);
        let is_current =
            !force && inputs.is_some_and(|inputs| record::holds(&work, inputs, &self.outputs()));
        if is_current {
            Output::note(
                "nothing has changed since the last build, so its components are used; `wattle \
                 build --force` builds them again",
            );
        } else {
            record::remove(&work.join(record::MARK))?;
            self.run_commands().await?;
        }
        let mut built = Vec::new();
        for (name, output) in &self.table.outputs {
            built.push(self.load(name, &self.folder.join(output), sandbox).await?);
        }
        install(&built)?;
        if let Some(inputs) = inputs.filter(|_| !is_current) {
            let made: Vec<Digest> = built.iter().map(|built| Digest::of(&built.bytes)).collect();
            record::write(&work, inputs, &made)?;
        }
        Ok(built.into_iter().map(|built| built.component).collect())
    }

    /// Returns the files that the commands make.
    fn outputs(&self) -> Vec<PathBuf> {
        self.table.outputs.values().map(|output| self.folder.join(output)).collect()
    }

    async fn run_commands(&self) -> Result<(), Error> {
        for command in &self.table.commands {
            let ran = process::run(&self.folder, &self.table.env, command).await;
            ran.map_err(|failure| self.with_hint(failure))?;
        }
        Ok(())
    }

    /// Adds a hint to the failure of a command that seems to lack a package.
    fn with_hint(&self, failure: CommandFailure) -> Error {
        if !failure.lacks_package || self.table.prepare.is_empty() {
            return failure.into();
        }
        Error::Failed(format!(
            "{}\n  hint: if packages are missing, delete `{WORK_FOLDER}/{}`, and the next build \
             runs `prepare` of {FILE} again",
            failure.message,
            prepare::MARK
        ))
    }

    /// Loads a built file with the sandbox.
    async fn load(
        &self,
        name: &PluginName,
        output: &Path,
        sandbox: &dyn Sandbox,
    ) -> Result<Built, Error> {
        if !output.is_file() {
            return Err(Error::Failed(format!(
                "the build made no `{}`\n  hint: `outputs` under `[build]` in {FILE} names the \
                 files that the commands make",
                output.display()
            )));
        }
        // The output is read once, so that the host loads and installs the same bytes even if the
        // output changes in between.
        let read = plugin_file::read(name, &FileLocation::Named(output.to_owned()), false).await;
        let bytes = read.map_err(|error| Error::Failed(error.to_string()))?;
        let loaded = Turn::unlimited(Output::note).load(sandbox, name, output, bytes.clone()).await;
        // A turn without limits compiles every component.
        let plugin = loaded
            .map_err(|error| Error::Failed(error.to_string()))?
            .ok_or_else(|| Error::Failed(format!("`{}` was not compiled", output.display())))?;
        let file = match self.manifest.components.get(name) {
            Some(file) => self.folder.join(file),
            // The manifest was checked: each of its outputs belongs to a component.
            None => output.to_owned(),
        };
        let changed = fs::read(&file).ok().is_none_or(|before| before != bytes);
        let component = Component::new(plugin.as_ref(), file, bytes.len(), changed);
        Ok(Built { component, bytes })
    }
}

/// A component that was built and can be loaded.
struct Built {
    component: Component,
    bytes: Bytes,
}

/// Replaces the changed components. All files are written before the first one is renamed, so that
/// a full disk leaves the old components. A file with the same content is not written again,
/// because a running host would reload it.
fn install(built: &[Built]) -> Result<(), Error> {
    let mut drafts = Vec::new();
    for Built { component, bytes } in built.iter().filter(|built| built.component.changed) {
        let file = component.file.as_path();
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
        }
        let draft = file.with_extension("wasm.part");
        fs::write(&draft, bytes).map_err(Error::file("write", &draft))?;
        drafts.push((draft, file));
    }
    // A rename is atomic, so a host that watches the folder never reads an incomplete file.
    for (draft, file) in drafts {
        fs::rename(&draft, file).map_err(Error::file("write", file))?;
    }
    Ok(())
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
