//! The adapter of the port `Sandbox`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use wattle_graph::id::{Digest, PluginName};
use wattle_run::ports;
use wattle_run::ports::sandbox::{LoadError, Plugin, PluginInfo};

use crate::code_cache::CodeCache;
use crate::compiled::CompiledComponent;
use crate::config::SandboxConfig;
use crate::engine;
use crate::error::Error;
use crate::guests_memory::GuestsMemory;
use crate::load::Loader;
use crate::plugin::WasmPlugin;

/// Implements the port `Sandbox` with wasmtime.
pub struct WasmSandbox {
    loader: Loader,
    /// Loaded code, by digest. Apps share plugins, and a reload often reads the same bytes. Code
    /// that no plugin uses is not kept.
    loaded: Mutex<HashMap<Digest, LoadedPlugin>>,
}

struct LoadedPlugin {
    code: Weak<CompiledComponent>,
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
        let cache = config.cache.clone().map(CodeCache::open).transpose()?;
        let engine = engine::create_engine(config.max_instances, config.guests_memory_bytes)?;
        let guests_memory = GuestsMemory::new(config.guests_memory_bytes);
        let loader = Loader::new(engine, guests_memory, cache, config.compiler.clone())?;
        Ok(Arc::new(Self { loader, loaded: Mutex::default() }))
    }

    fn lookup(&self, digest: Digest) -> Option<(Arc<CompiledComponent>, PluginInfo)> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let known = loaded.get(&digest)?;
        Some((known.code.upgrade()?, known.info.clone()))
    }

    fn insert(&self, code: &Arc<CompiledComponent>, info: &PluginInfo) {
        let known = LoadedPlugin { code: Arc::downgrade(code), info: info.clone() };
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|_, known| known.code.strong_count() > 0);
        loaded.insert(info.digest, known);
    }
}

#[async_trait]
impl ports::Sandbox for WasmSandbox {
    async fn load(&self, name: &PluginName, bytes: Bytes) -> Result<Arc<dyn Plugin>, LoadError> {
        let digest = Digest::of(&bytes);
        if let Some((code, info)) = self.lookup(digest) {
            let info = PluginInfo { name: name.clone(), ..info };
            return Ok(Arc::new(WasmPlugin { info, code }));
        }
        let loaded = self.loader.load(name, bytes, digest).await;
        let (code, info) = loaded.map_err(|rejection| rejection.into_load_error(name))?;
        self.insert(&code, &info);
        Ok(Arc::new(WasmPlugin { info, code }))
    }
}
