//! Loading: from bytes to compiled code with a description.
//!
//! The bytes are untrusted. They are checked in stages, the cheap and safe ones first: the kind of
//! the file, the structure of the component, its imports and exports, then its compilation, and
//! last its description of itself. All stages but the last run in the process and within the limits
//! of [`crate::compile`].

pub(crate) mod code_memory;
pub(crate) mod code_room;
pub(crate) mod contract;
mod describe;
pub(crate) mod description;
pub(crate) mod encode;
pub(crate) mod file_kind;
mod inspect;
pub(crate) mod interface;
pub(crate) mod prepare;
pub(crate) mod rejection;
mod route;
pub(crate) mod text;

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::component::Component;
use wattle_graph::id::{Digest, PluginName};
use wattle_run::memory_pool::{MemoryPool, Occupied};
use wattle_run::ports::sandbox::{LoadEffort, PluginInfo};

use crate::code_cache::{self, CodeCache, LoadedCode};
use crate::compile::{CompileError, Compiler, CompilerPool};
use crate::compiled::{CompiledComponent, Exports, first_memory_bytes};
use crate::engines::Engines;
use crate::guest_pool::GuestPool;
use crate::load::code_room::{CodeRoom, Compiled};
use crate::load::describe::PluginDescription;
use crate::load::prepare::Outline;
pub(crate) use crate::load::rejection::Rejection;
use crate::typed::docs::PackageDocs;
use crate::typed::{self, TypedExports, TypedFunction};

/// A component that was loaded, with its description.
pub(crate) type Loaded = (Arc<CompiledComponent>, PluginInfo);

/// The reason why a component was not loaded.
pub(crate) struct LoadFailure {
    pub(crate) rejection: Rejection,
    /// True if every attempt to compile these bytes ends with this rejection.
    pub(crate) is_final: bool,
}

impl From<CompileError> for LoadFailure {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Refused(rejection) | CompileError::OutOfTime(rejection) => {
                Self { rejection, is_final: true }
            }
            CompileError::Failed(rejection) => Self { rejection, is_final: false },
        }
    }
}

/// The rejection is not final: a check before or after the compilation is cheap to repeat.
impl From<Rejection> for LoadFailure {
    fn from(rejection: Rejection) -> Self {
        Self { rejection, is_final: false }
    }
}

/// Loads components. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Loader(Arc<LoaderInner>);

struct LoaderInner {
    engines: Engines,
    cache: Option<CodeCache>,
    compilers: CompilerPool,
    guests_memory: GuestPool,
    code_memory: MemoryPool,
}

impl Loader {
    /// Creates a loader for engines whose guests share `guests_memory`, and whose compiled code
    /// shares `code_memory`.
    pub(crate) fn new(
        engines: Engines,
        guests_memory: GuestPool,
        code_memory: MemoryPool,
        cache: Option<CodeCache>,
        compiler: Compiler,
    ) -> Self {
        let compilers = CompilerPool::new(compiler);
        Self(Arc::new(LoaderInner { engines, cache, compilers, guests_memory, code_memory }))
    }

    /// Checks, compiles and describes a file. Returns `None` if this needs more than `effort`
    /// permits.
    pub(crate) async fn load(
        &self,
        name: &PluginName,
        bytes: Bytes,
        digest: Digest,
        effort: LoadEffort,
    ) -> Result<Option<Loaded>, LoadFailure> {
        // A file of the wrong kind is rejected without a compiler.
        file_kind::detect(&bytes)?;
        if let Some(found) = self.load_cached(digest).await? {
            return Ok(Some(self.describe(name, digest, found).await?));
        }
        let parts = &self.0;
        let room = parts.room(digest);
        let compiled = match effort {
            LoadEffort::Cached => None,
            LoadEffort::Brief => parts.compilers.compile_briefly(bytes, &room).await?,
            LoadEffort::Full => Some(parts.compilers.compile(bytes, &room).await?),
        };
        let Some(compiled) = compiled else { return Ok(None) };
        let found = self.keep(compiled, room).await?;
        Ok(Some(self.describe(name, digest, found).await?))
    }

    async fn describe(
        &self,
        name: &PluginName,
        digest: Digest,
        LoadedCode { outline, component, memory }: LoadedCode,
    ) -> Result<Loaded, Rejection> {
        let mut code = self.0.link(&component, &outline, memory)?;
        let Outline { contract, manifest, docs, size_bytes, abi: _ } = outline;
        let described = if contract.is_typed {
            let (functions, described) = self.describe_types(component, docs).await?;
            code.exports.typed = functions;
            described
        } else {
            describe::describe(&code, name).await?
        };
        let info = PluginInfo {
            name: name.clone(),
            digest,
            size_bytes,
            contract: contract.version,
            imports: contract.imports,
            exports: contract.exports,
            nodes: described.nodes,
            tools: described.tools,
            reducers: described.reducers,
            routes: described.routes,
            refused: described.refused,
            manifest,
        };
        Ok((Arc::new(code), info))
    }
}

impl Loader {
    /// Describes a typed component by the types of its functions. Runs on a blocking thread,
    /// because a component can have many functions with large schemas.
    async fn describe_types(
        &self,
        component: Component,
        docs: Option<PackageDocs>,
    ) -> Result<(Vec<TypedFunction>, PluginDescription), Rejection> {
        self.blocking(move |_| {
            let TypedExports { functions, tools, refused } =
                typed::describe(&component, docs.as_ref())?;
            Ok((functions, PluginDescription { tools, refused, ..PluginDescription::default() }))
        })
        .await
    }

    async fn load_cached(&self, digest: Digest) -> Result<Option<LoadedCode>, Rejection> {
        self.blocking(move |parts| match &parts.cache {
            Some(cache) => cache.get(&parts.engines, &parts.code_memory, digest),
            None => Ok(None),
        })
        .await
    }

    /// Loads compiled code, and writes it to the cache.
    async fn keep(&self, compiled: Compiled, room: CodeRoom) -> Result<LoadedCode, Rejection> {
        let Compiled { outline, code, memory } = compiled;
        self.blocking(move |parts| {
            let engine =
                parts.engines.get(outline.abi).map_err(|e| rejection::no_async_engine(&e))?;
            let component = code_cache::load_compiled(engine.engine(), &code)?;
            room.put(&outline, &code);
            Ok(LoadedCode { outline, component, memory })
        })
        .await
    }

    /// Runs `work` on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&LoaderInner) -> Result<T, Rejection> + Send + 'static,
    ) -> Result<T, Rejection> {
        let parts = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&parts)).await;
        done.unwrap_or_else(|error| Err(rejection::panicked(&error)))
    }
}

impl LoaderInner {
    /// Returns the place of the code of a component.
    fn room(&self, digest: Digest) -> CodeRoom {
        let file = self.cache.as_ref().map(|cache| cache.file(&self.engines, digest));
        CodeRoom::new(self.code_memory.clone(), file)
    }

    fn link(
        &self,
        compiled: &Component,
        outline: &Outline,
        memory: Occupied,
    ) -> Result<CompiledComponent, Rejection> {
        let contract = &outline.contract;
        let engine = self.engines.get(outline.abi).map_err(|e| rejection::no_async_engine(&e))?;
        let pre =
            engine.link(compiled, contract).map_err(|error| rejection::unknown_import(&error))?;
        let exports = Exports::find(compiled, |name| contract.has_export(name))
            .map_err(|error| rejection::missing_export(&format!("{error:#}")))?;
        Ok(CompiledComponent {
            pre,
            exports,
            abi: outline.abi,
            places: engine.places_of(compiled),
            guests_memory: self.guests_memory.clone(),
            first_memory_bytes: first_memory_bytes(compiled),
            _memory: memory,
        })
    }
}
