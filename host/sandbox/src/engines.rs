//! The engines of the host, each with its linkers: one for the synchronous ABI of components, and
//! one for the asynchronous ABI. The latter is created when the first component needs it.

use std::sync::{Arc, Mutex, PoisonError};

use wasmtime::Engine;
use wasmtime::component::{Component, InstancePre, Linker};

use crate::compiled::Places;
use crate::engine::{self, Abi, Room};
use crate::error::Error;
use crate::guest_pool::GuestPool;
use crate::host_state::HostState;
use crate::load::contract::ComponentWorld;
use crate::{import, wasi};

/// The engines of the host.
pub(crate) struct Engines {
    synchronous: Arc<LinkingEngine>,
    asynchronous: Mutex<Option<Arc<LinkingEngine>>>,
    max_instances: u32,
    guests_memory_bytes: u64,
}

impl Engines {
    /// Creates the engine for the synchronous ABI, for at most `max_instances` concurrent guests.
    /// The kernel's limit on memory mappings can lower this number. The caller enforces
    /// `guests_memory_bytes`, the limit of the memory of all guests.
    pub(crate) fn new(max_instances: u32, guests_memory_bytes: u64) -> Result<Self, Error> {
        let synchronous = LinkingEngine::new(Abi::Synchronous, max_instances, guests_memory_bytes)?;
        Ok(Self {
            synchronous: Arc::new(synchronous),
            asynchronous: Mutex::default(),
            max_instances,
            guests_memory_bytes,
        })
    }

    /// Returns the engine for the synchronous ABI.
    pub(crate) fn synchronous(&self) -> &LinkingEngine {
        &self.synchronous
    }

    /// Returns the engine for an ABI. Creates the engine for the asynchronous ABI when a component
    /// needs it for the first time, which takes some milliseconds.
    pub(crate) fn get(&self, abi: Abi) -> Result<Arc<LinkingEngine>, Error> {
        if abi == Abi::Synchronous {
            return Ok(Arc::clone(&self.synchronous));
        }
        let mut made = self.asynchronous.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = &*made {
            return Ok(Arc::clone(engine));
        }
        let engine =
            Arc::new(LinkingEngine::new(abi, self.max_instances, self.guests_memory_bytes)?);
        *made = Some(Arc::clone(&engine));
        Ok(engine)
    }
}

/// An engine with the imports that it can link.
pub(crate) struct LinkingEngine {
    engine: Engine,
    abi: Abi,
    /// Linker with the imports of the contract.
    linker: Linker<HostState>,
    /// Linker with the imports of the contract and of WASI, for components that import WASI.
    linker_with_wasi: Linker<HostState>,
    /// Linker with the imports of the contract, of WASI and of `wasi:http`, for components that
    /// import `wasi:http`.
    linker_with_http: Linker<HostState>,
    /// The places of the engine. A live guest holds one or more places.
    places: GuestPool,
}

impl LinkingEngine {
    fn new(abi: Abi, max_instances: u32, guests_memory_bytes: u64) -> Result<Self, Error> {
        let room = Room::possible(abi, max_instances, guests_memory_bytes);
        let engine = engine::create_engine(abi, &room)?;
        let linker = create_linker(&engine, &[import::link])?;
        let linker_with_wasi = create_linker(&engine, &[import::link, wasi::link])?;
        let linker_with_http =
            create_linker(&engine, &[import::link, wasi::link, wasi::link_http])?;
        let places = GuestPool::new(u64::from(room.instances));
        Ok(Self { engine, abi, linker, linker_with_wasi, linker_with_http, places })
    }

    /// Returns the engine.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Links the imports of a component that was compiled for this engine.
    pub(crate) fn link(
        &self,
        compiled: &Component,
        contract: &ComponentWorld,
    ) -> wasmtime::Result<InstancePre<HostState>> {
        let linker = if contract.imports_package(wasi::HTTP_PACKAGE) {
            &self.linker_with_http
        } else if contract.wasi {
            &self.linker_with_wasi
        } else {
            &self.linker
        };
        linker.instantiate_pre(compiled)
    }

    /// Returns the places of the engine, with the number of places that each guest of `compiled`
    /// takes. The component must have been compiled for this engine.
    pub(crate) fn places_of(&self, compiled: &Component) -> Places {
        let pool = self.places.clone();
        let of_one_guest = engine::places(self.abi, compiled).min(pool.most_of_one_guest());
        Places { pool, of_one_guest }
    }
}

/// Defines some interfaces in a linker.
type Define = fn(&mut Linker<HostState>) -> wasmtime::Result<()>;

fn create_linker(engine: &Engine, parts: &[Define]) -> Result<Linker<HostState>, Error> {
    let mut linker = Linker::new(engine);
    for define in parts {
        define(&mut linker).map_err(|error| Error::Link { message: format!("{error:#}") })?;
    }
    Ok(linker)
}
