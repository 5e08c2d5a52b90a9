//! From bytes to compiled code with a description.
//!
//! The bytes may be anything. They are looked at in stages, each cheaper and safer than the next:
//! what kind of file it is, what the component is made of, whether its imports and exports are of
//! the contract, and only then compiling it and asking it to describe itself. Compiling has no
//! time limit; what bounds it is the size of the file and of what it is made of.

mod contract;
mod describe;
mod encode;
mod fault;
mod interface;
mod kind;
mod survey;
mod text;

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::Engine;
use wasmtime::component::{Component, InstancePre, Linker};
use wattle_graph::id::{Digest, PluginName};
use wattle_run::ports::sandbox::PluginInfo;

use crate::bindings::exports::wattle::plugin::{reducer, tool, web};
use crate::cache::Cache;
use crate::code::{Code, Exports, NodeExport};
use crate::error::Error;
use crate::guest::Guest;
use crate::load::contract::Contract;
pub(crate) use crate::load::fault::Fault;
use crate::load::survey::Survey;
use crate::{import, wasi};

/// Turns bytes into code. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Loader(Arc<Parts>);

struct Parts {
    engine: Engine,
    /// The imports of the contract.
    plain: Linker<Guest>,
    /// The same and WASI, for components that import it.
    with_wasi: Linker<Guest>,
    cache: Option<Cache>,
}

/// What the first stages found: everything but the description.
struct Checked {
    code: Code,
    contract: Contract,
    manifest: Option<String>,
    size_bytes: u64,
}

impl Loader {
    /// A loader for an engine.
    pub(crate) fn new(engine: Engine, cache: Option<Cache>) -> Result<Self, Error> {
        let failed = |error: wasmtime::Error| Error::Link { message: format!("{error:#}") };
        let mut plain = Linker::new(&engine);
        import::link(&mut plain).map_err(failed)?;
        let mut with_wasi = Linker::new(&engine);
        import::link(&mut with_wasi).map_err(failed)?;
        wasi::link(&mut with_wasi).map_err(failed)?;
        Ok(Self(Arc::new(Parts { engine, plain, with_wasi, cache })))
    }

    /// Checks, compiles and describes a file.
    pub(crate) async fn load(
        &self,
        name: &PluginName,
        bytes: Bytes,
        digest: Digest,
    ) -> Result<(Arc<Code>, PluginInfo), Fault> {
        let parts = Arc::clone(&self.0);
        let work = tokio::task::spawn_blocking(move || parts.check(&bytes, digest));
        let Checked { code, contract, manifest, size_bytes } = match work.await {
            Ok(checked) => checked?,
            Err(error) => return Err(fault::panicked(&error)),
        };
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

impl Parts {
    fn check(&self, bytes: &[u8], digest: Digest) -> Result<Checked, Fault> {
        let encoded;
        let component = match kind::of(bytes)? {
            kind::Kind::Component => bytes,
            kind::Kind::CoreModule => {
                encoded = encode::component(bytes)?;
                &encoded
            }
        };
        let manifest = survey::manifest(bytes)?;
        let Survey { imports, exports } = survey::survey(component)?;
        let contract = contract::check(&imports, &exports)?;
        let compiled = self.compile(component, digest)?;
        let linker = if contract.wasi { &self.with_wasi } else { &self.plain };
        let pre = linker.instantiate_pre(&compiled).map_err(|error| fault::unlinked(&error))?;
        let exports = find(&pre, &contract)?;
        let size_bytes = component.len() as u64;
        Ok(Checked { code: Code { pre, exports }, contract, manifest, size_bytes })
    }

    fn compile(&self, component: &[u8], digest: Digest) -> Result<Component, Fault> {
        if let Some(found) = self.cache.as_ref().and_then(|cache| cache.get(&self.engine, digest)) {
            return Ok(found);
        }
        let compiled = Component::from_binary(&self.engine, component)
            .map_err(|error| fault::invalid(&format!("{error:#}")))?;
        if let Some(cache) = &self.cache {
            cache.put(&self.engine, digest, &compiled);
        }
        Ok(compiled)
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
