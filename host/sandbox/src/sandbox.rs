//! The adapter of the port `Sandbox`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use wattle_graph::id::{Digest, PluginName};
use wattle_run::ports;
use wattle_run::ports::sandbox::{LoadError, Plugin, PluginInfo};

use crate::cache::Cache;
use crate::code::Code;
use crate::config::SandboxConfig;
use crate::engine;
use crate::error::Error;
use crate::load::Loader;
use crate::plugin::WasmPlugin;

/// Implements the port `Sandbox` with wasmtime.
pub struct WasmSandbox {
    loader: Loader,
    /// Loaded code, by digest. Apps share plugins, and a reload often reads the same bytes. Code
    /// that no plugin uses is not kept.
    loaded: Mutex<HashMap<Digest, Known>>,
}

struct Known {
    code: Weak<Code>,
    info: PluginInfo,
}

impl WasmSandbox {
    /// Sets up the engine, its ticker and the cache.
    ///
    /// # Errors
    ///
    /// [`Error::Engine`] if the address space is too small for `max_instances`, [`Error::CacheDir`]
    /// if the directory cannot be used, [`Error::Ticker`] and [`Error::Link`] for faults of the
    /// host itself.
    pub fn new(config: &SandboxConfig) -> Result<Arc<Self>, Error> {
        let cache = config.cache.clone().map(Cache::open).transpose()?;
        let engine = engine::create(config.max_instances)?;
        let loader = Loader::new(engine, cache, config.compiler.clone())?;
        Ok(Arc::new(Self { loader, loaded: Mutex::default() }))
    }

    fn known(&self, digest: Digest) -> Option<(Arc<Code>, PluginInfo)> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let known = loaded.get(&digest)?;
        Some((known.code.upgrade()?, known.info.clone()))
    }

    fn remember(&self, code: &Arc<Code>, info: &PluginInfo) {
        let known = Known { code: Arc::downgrade(code), info: info.clone() };
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|_, known| known.code.strong_count() > 0);
        loaded.insert(info.digest, known);
    }
}

#[async_trait]
impl ports::Sandbox for WasmSandbox {
    async fn load(&self, name: &PluginName, bytes: Bytes) -> Result<Arc<dyn Plugin>, LoadError> {
        let digest = Digest::of(&bytes);
        if let Some((code, info)) = self.known(digest) {
            let info = PluginInfo { name: name.clone(), ..info };
            return Ok(Arc::new(WasmPlugin { info, code }));
        }
        let loaded = self.loader.load(name, bytes, digest).await;
        let (code, info) = loaded.map_err(|fault| fault.of(name))?;
        self.remember(&code, &info);
        Ok(Arc::new(WasmPlugin { info, code }))
    }
}
