//! The adapter of the port `Sandbox`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use wattle_graph::id::{Digest, PluginName};
use wattle_run::memory_pool::MemoryPool;
use wattle_run::ports;
use wattle_run::ports::sandbox::{LoadEffort, LoadError, Plugin, PluginInfo};

use crate::code_cache::CodeCache;
use crate::compiled::CompiledComponent;
use crate::config::SandboxConfig;
use crate::engines::Engines;
use crate::error::Error;
use crate::guest_pool::GuestPool;
use crate::load::{LoadFailure, Loader};
use crate::plugin::WasmPlugin;
use crate::refused::RefusedComponents;
use crate::running_loads::RunningLoads;

/// Implements the port `Sandbox` with wasmtime.
pub struct WasmSandbox {
    loader: Loader,
    /// Loaded code, by digest. Apps share plugins, and a reload often reads the same bytes. The
    /// references are weak, so code that no plugin uses is freed.
    loaded: Mutex<HashMap<Digest, LoadedPlugin>>,
    /// Components whose compilation failed. The sandbox does not compile them again.
    refused: Mutex<RefusedComponents>,
    running: RunningLoads,
}

struct LoadedPlugin {
    code: Weak<CompiledComponent>,
    info: PluginInfo,
}

impl WasmSandbox {
    /// Sets up the engine for the synchronous ABI, its ticker and the cache of compiled code. The
    /// engine for the asynchronous ABI is set up when the first component with this ABI is loaded.
    ///
    /// # Errors
    ///
    /// [`Error::Engine`] if the address space is too small for `max_instances`, [`Error::CacheDir`]
    /// if the directory cannot be used, [`Error::Ticker`] if the thread that interrupts guests
    /// cannot be started, and [`Error::Link`] if the interfaces of the host cannot be linked.
    pub fn new(config: &SandboxConfig) -> Result<Arc<Self>, Error> {
        let cache = config.cache.clone().map(CodeCache::open).transpose()?;
        let engines = Engines::new(config.max_instances, config.guests_memory_bytes)?;
        let guests_memory = GuestPool::new(config.guests_memory_bytes);
        let code_memory = MemoryPool::new(config.code_bytes);
        let compiler = config.compiler.clone();
        let loader = Loader::new(engines, guests_memory, code_memory, cache, compiler);
        Ok(Arc::new(Self {
            loader,
            loaded: Mutex::default(),
            refused: Mutex::default(),
            running: RunningLoads::default(),
        }))
    }

    /// Returns the plugin of a component that is loaded, or the error of a refused component.
    /// Returns `None` for a component that must be loaded.
    fn known(
        &self,
        name: &PluginName,
        digest: Digest,
    ) -> Option<Result<Arc<dyn Plugin>, LoadError>> {
        if let Some((code, info)) = self.lookup(digest) {
            let info = PluginInfo { name: name.clone(), ..info };
            return Some(Ok(Arc::new(WasmPlugin { info, code })));
        }
        let rejection = self.refused().get(digest)?;
        Some(Err(rejection.into_load_error(name)))
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

    /// Locks the refused components and ignores poisoning: no other code runs under the lock.
    fn refused(&self) -> MutexGuard<'_, RefusedComponents> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ports::Sandbox for WasmSandbox {
    async fn load_within(
        &self,
        name: &PluginName,
        bytes: Bytes,
        effort: LoadEffort,
    ) -> Result<Option<Arc<dyn Plugin>>, LoadError> {
        let digest = Digest::of(&bytes);
        if let Some(known) = self.known(name, digest) {
            return known.map(Some);
        }
        let Some(_running) = self.running.begin(digest, effort).await else { return Ok(None) };
        // Another load of the component may have ended meanwhile.
        if let Some(known) = self.known(name, digest) {
            return known.map(Some);
        }
        match self.loader.load(name, bytes, digest, effort).await {
            Ok(None) => Ok(None),
            Ok(Some((code, info))) => {
                self.insert(&code, &info);
                Ok(Some(Arc::new(WasmPlugin { info, code })))
            }
            Err(LoadFailure { rejection, is_final }) => {
                if is_final {
                    self.refused().insert(digest, rejection.clone());
                }
                Err(rejection.into_load_error(name))
            }
        }
    }
}
