//! Loading: from bytes to compiled code with a description.
//!
//! The bytes are untrusted. They are checked in stages, the cheap and safe ones first: the kind of
//! the file, the structure of the component, its imports and exports, then its compilation, and
//! last its description of itself. All stages but the last run in the process and within the limits
//! of [`crate::compile`].

mod contract;
mod describe;
mod encode;
pub(crate) mod fault;
mod interface;
pub(crate) mod kind;
pub(crate) mod prepare;
mod survey;
pub(crate) mod text;

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::Engine;
use wasmtime::component::{Component, InstancePre, Linker};
use wattle_graph::id::{Digest, PluginName};
use wattle_run::ports::sandbox::PluginInfo;

use crate::bindings::exports::wattle::plugin::{reducer, tool, web};
use crate::cache::Cache;
use crate::code::{Code, Exports, NodeExport};
use crate::compile::{Compiler, Compilers};
use crate::error::Error;
use crate::guest::Guest;
use crate::load::contract::Contract;
pub(crate) use crate::load::fault::Fault;
use crate::load::prepare::{Outline, Prepared};
use crate::{cache, import, wasi};

/// Loads components. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Loader(Arc<Parts>);

struct Parts {
    engine: Engine,
    /// Linker with the imports of the contract.
    plain: Linker<Guest>,
    /// Linker with the imports of the contract and of WASI, for components that import WASI.
    with_wasi: Linker<Guest>,
    cache: Option<Cache>,
    compilers: Compilers,
}

impl Loader {
    /// Creates a loader for an engine.
    pub(crate) fn new(
        engine: Engine,
        cache: Option<Cache>,
        compiler: Compiler,
    ) -> Result<Self, Error> {
        let failed = |error: wasmtime::Error| Error::Link { message: format!("{error:#}") };
        let mut plain = Linker::new(&engine);
        import::link(&mut plain).map_err(failed)?;
        let mut with_wasi = Linker::new(&engine);
        import::link(&mut with_wasi).map_err(failed)?;
        wasi::link(&mut with_wasi).map_err(failed)?;
        let compilers = Compilers::new(compiler);
        Ok(Self(Arc::new(Parts { engine, plain, with_wasi, cache, compilers })))
    }

    /// Checks, compiles and describes a file.
    pub(crate) async fn load(
        &self,
        name: &PluginName,
        bytes: Bytes,
        digest: Digest,
    ) -> Result<(Arc<Code>, PluginInfo), Fault> {
        // A file of the wrong kind is rejected without a compiler.
        kind::of(&bytes)?;
        let (outline, compiled) = match self.cached(digest).await? {
            Some(found) => found,
            None => self.compiled(bytes, digest).await?,
        };
        let code = self.0.link(&compiled, &outline.contract)?;
        let Outline { contract, manifest, size_bytes } = outline;
        let described = describe::describe(&code, name).await?;
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
            manifest,
        };
        Ok((Arc::new(code), info))
    }
}

impl Loader {
    async fn cached(&self, digest: Digest) -> Result<Option<(Outline, Component)>, Fault> {
        self.blocking(move |parts| {
            Ok(parts.cache.as_ref().and_then(|cache| cache.get(&parts.engine, digest)))
        })
        .await
    }

    async fn compiled(&self, bytes: Bytes, digest: Digest) -> Result<(Outline, Component), Fault> {
        let parts = &self.0;
        let Prepared { outline, code } = parts.compilers.compile(&parts.engine, bytes).await?;
        self.blocking(move |parts| {
            let compiled = cache::load(&parts.engine, &code)?;
            if let Some(cache) = &parts.cache {
                cache.put(&parts.engine, digest, &outline, &code);
            }
            Ok((outline, compiled))
        })
        .await
    }

    /// Runs file access on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Parts) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let parts = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&parts)).await;
        done.unwrap_or_else(|error| Err(fault::panicked(&error)))
    }
}

impl Parts {
    fn link(&self, compiled: &Component, contract: &Contract) -> Result<Code, Fault> {
        let linker = if contract.wasi { &self.with_wasi } else { &self.plain };
        let pre = linker.instantiate_pre(compiled).map_err(|error| fault::unlinked(&error))?;
        let exports = find(&pre, contract)?;
        Ok(Code { pre, exports })
    }
}

fn find(pre: &InstancePre<Guest>, contract: &Contract) -> Result<Exports, Fault> {
    let missing = |error: wasmtime::Error| fault::missing(&format!("{error:#}"));
    Ok(Exports {
        node: contract.has("node").then(|| NodeExport::new(pre)).transpose().map_err(missing)?,
        tool: contract
            .has("tool")
            .then(|| tool::GuestIndices::new(pre))
            .transpose()
            .map_err(missing)?,
        reducer: contract
            .has("reducer")
            .then(|| reducer::GuestIndices::new(pre))
            .transpose()
            .map_err(missing)?,
        web: contract
            .has("web")
            .then(|| web::GuestIndices::new(pre))
            .transpose()
            .map_err(missing)?,
    })
}
