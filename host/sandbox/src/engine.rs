//! Setup of wasmtime: one engine for each ABI of components, each with a thread that makes its
//! guests interruptible.

use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};
use wasmtime::component::Component;
use wasmtime::{
    Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, PoolingAllocationConfig,
    WasmBacktraceDetails, WasmFeatures,
};
use wattle_run::limit;

use crate::cpu_meter::EPOCH_INTERVAL;
use crate::error::Error;
use crate::host_state::MAX_TASKS;
use crate::memory_meter::{MAX_MEMORIES, MAX_TABLES};

/// Stack of guest code, in bytes. Deep recursion traps at its end.
const WASM_STACK_BYTES: usize = 512 << 10;

/// Stack of a fiber, in bytes: guest code and the host functions that it calls. Guest code takes at
/// most [`WASM_STACK_BYTES`], so host functions have far more than they need. An overflow of this
/// stack would abort the process.
const FIBER_STACK_BYTES: usize = 2 << 20;

/// Maximum memory of a freed slot that stays resident for the next guest, in bytes. Resident memory
/// saves page faults. This memory is not part of any guest's limit, so the slots of a large pool
/// keep less; see [`kept_bytes`].
const KEEP_RESIDENT_BYTES: u64 = 2 << 20;

/// Memory of a freed table that stays resident for its next guest, in bytes.
const TABLE_KEEP_RESIDENT_BYTES: usize = 4 << 10;

/// Tables that the pool reserves for each component. A guest with more tables takes several places
/// of the pool.
const TABLES_PER_GUEST: u32 = 4;

/// The number of concurrent guests divided by this number is the number of concurrent guests with
/// the asynchronous ABI. The engine for the asynchronous ABI reserves more for each guest, and few
/// toolchains build components with this ABI.
const ASYNC_INSTANCES_DIVISOR: u32 = 8;

/// Minimum number of concurrent guests with the asynchronous ABI. It applies to a host with few
/// concurrent guests, where [`ASYNC_INSTANCES_DIVISOR`] leads to a smaller number.
const LEAST_ASYNC_INSTANCES: u32 = 16;

/// Linear memories that the pool reserves for each component with the synchronous ABI. Most of
/// these components have one linear memory. A guest with more takes several places of the pool.
const MEMORIES_PER_GUEST: u32 = 1;

/// Linear memories that the pool reserves for each component with the asynchronous ABI. A component
/// of JavaScript has three. A guest with more takes several places of the pool.
const MEMORIES_PER_ASYNC_GUEST: u32 = 3;

/// Fibers that the pool reserves for each component with the asynchronous ABI: one for each task,
/// and one that wasmtime keeps for the next task. A guest therefore never takes the fibers of
/// another guest.
const STACKS_PER_ASYNC_GUEST: u32 = MAX_TASKS + 1;

/// Maximum number of stack frames in the message of a trap.
const MAX_BACKTRACE_FRAMES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4);

/// Memory mappings of a live guest: two for its fiber, four for its memory, and five for the guests
/// with the asynchronous ABI. Each of those has 34 mappings, and there is one of them for
/// [`ASYNC_INSTANCES_DIVISOR`] guests.
const MAPPINGS_PER_GUEST: u64 = 11;

/// Memory mappings left to the rest of the process. At the kernel's limit, `malloc` fails and the
/// process aborts, so the pool must stay well below this limit.
const MAPPINGS_RESERVED: u64 = 8_000;

/// Default limit of Linux on memory mappings.
const DEFAULT_MAX_MAPPINGS: u64 = 65_530;

/// The ABI of the functions of a component. Each ABI has its own engine, because an engine that
/// supports asynchronous functions takes three times as long for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Abi {
    /// No function is asynchronous, as in the contract.
    #[default]
    Synchronous,
    /// Some function uses the asynchronous ABI of the component model.
    Asynchronous,
}

/// Creates an engine, and starts the ticker that increments its epoch. The ticker ends with the
/// engine.
pub(crate) fn create_engine(abi: Abi, room: &Room) -> Result<Engine, Error> {
    let engine = Engine::new(&config(abi, room)).map_err(|error| Error::Engine {
        max_instances: room.instances,
        message: format!("{error:#}"),
    })?;
    start_ticker(engine.weak())?;
    Ok(engine)
}

/// Creates an engine that only compiles, and reserves no memory for guests. The compiled code can
/// be loaded by each engine of [`create_engine`] with the same ABI.
pub(crate) fn create_compile_engine(abi: Abi) -> wasmtime::Result<Engine> {
    Engine::new(&code_config(abi))
}

fn config(abi: Abi, room: &Room) -> Config {
    let mut config = code_config(abi);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool_config(room)));
    config
}

/// Returns the settings that compiled code depends on.
fn code_config(abi: Abi) -> Config {
    let mut config = Config::new();
    config
        .concurrency_support(abi == Abi::Asynchronous)
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK_BYTES)
        .async_stack_size(FIBER_STACK_BYTES)
        .memory_init_cow(true)
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(Some(MAX_BACKTRACE_FRAMES))
        .generate_address_map(false);
    disable_nondeterminism(&mut config);
    config
}

/// Disables features that could make two executions differ, and features that no guest needs.
fn disable_nondeterminism(config: &mut Config) {
    let off = WasmFeatures::THREADS
        | WasmFeatures::SHARED_EVERYTHING_THREADS
        | WasmFeatures::RELAXED_SIMD
        | WasmFeatures::GC
        | WasmFeatures::FUNCTION_REFERENCES
        | WasmFeatures::EXCEPTIONS
        | WasmFeatures::LEGACY_EXCEPTIONS
        | WasmFeatures::MEMORY64
        | WasmFeatures::STACK_SWITCHING;
    config.wasm_features(off, false);
    config.cranelift_nan_canonicalization(true).shared_memory(false);
}

/// Returns how many places a guest of a component takes in the engine for its ABI. The engine
/// reserves a fixed number of memories and tables for each place.
pub(crate) fn places(abi: Abi, component: &Component) -> u64 {
    // A component that imports modules is rejected when it is loaded.
    let Some(required) = component.resources_required() else { return 1 };
    let of_memories = required.num_memories.div_ceil(match abi {
        Abi::Synchronous => MEMORIES_PER_GUEST,
        Abi::Asynchronous => MEMORIES_PER_ASYNC_GUEST,
    });
    let of_tables = required.num_tables.div_ceil(TABLES_PER_GUEST);
    u64::from(of_memories.max(of_tables).max(1))
}

/// The resources that an engine reserves for its guests.
pub(crate) struct Room {
    /// Maximum number of concurrent guests.
    pub(crate) instances: u32,
    memories: u32,
    stacks: u32,
    /// Memory of a freed slot that stays resident, in bytes.
    kept_bytes: usize,
}

impl Room {
    /// Returns the resources of the engine for an ABI, in a host with at most `wanted_instances`
    /// concurrent guests. The kernel's limit on memory mappings can lower this number. The caller
    /// enforces `guests_memory_bytes`, the limit of the memory of all guests.
    pub(crate) fn possible(abi: Abi, wanted_instances: u32, guests_memory_bytes: u64) -> Self {
        Self::new(abi, cap_instances(wanted_instances, max_mappings()), guests_memory_bytes)
    }

    /// Returns the resources of the engine for an ABI, in a host with `max_instances` concurrent
    /// guests. The engine for the asynchronous ABI reserves resources for a fraction of these
    /// guests.
    fn new(abi: Abi, max_instances: u32, guests_memory_bytes: u64) -> Self {
        match abi {
            Abi::Synchronous => Self {
                instances: max_instances,
                memories: max_instances.saturating_mul(MEMORIES_PER_GUEST),
                stacks: max_instances,
                kept_bytes: kept_bytes(max_instances, guests_memory_bytes),
            },
            Abi::Asynchronous => {
                let part = max_instances / ASYNC_INSTANCES_DIVISOR;
                let instances = part.max(LEAST_ASYNC_INSTANCES);
                Self {
                    instances,
                    memories: instances.saturating_mul(MEMORIES_PER_ASYNC_GUEST),
                    stacks: instances.saturating_mul(STACKS_PER_ASYNC_GUEST),
                    // The slots of the engine for the synchronous ABI already keep all memory that
                    // slots may keep.
                    kept_bytes: 0,
                }
            }
        }
    }
}

fn pool_config(room: &Room) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(room.instances)
        // The pool only counts core instances. With this total, no guest takes the core instances
        // of another guest.
        .total_core_instances(room.instances.saturating_mul(limit::CORE_INSTANCES))
        .total_memories(room.memories)
        .total_tables(room.instances.saturating_mul(TABLES_PER_GUEST))
        .total_stacks(room.stacks)
        .max_core_instances_per_component(limit::CORE_INSTANCES)
        .max_memories_per_component(MAX_MEMORIES as u32)
        .max_tables_per_component(MAX_TABLES as u32)
        // The default of wasmtime is one, but the modules of some toolchains have more tables.
        .max_tables_per_module(MAX_TABLES as u32)
        .table_elements(limit::TABLE_ELEMENTS as usize)
        .linear_memory_keep_resident(room.kept_bytes)
        .table_keep_resident(TABLE_KEEP_RESIDENT_BYTES)
        .pagemap_scan(Enabled::Auto);
    pool
}

/// Returns the memory of a freed slot that stays resident, in bytes. All slots together keep at
/// most a fixed fraction of `guests_memory_bytes`.
fn kept_bytes(max_instances: u32, guests_memory_bytes: u64) -> usize {
    let of_one = guests_memory_bytes / limit::KEPT_MEMORY_DIVISOR / u64::from(max_instances.max(1));
    of_one.min(KEEP_RESIDENT_BYTES) as usize
}

/// Caps the number of instances by `max_mappings`, the number of memory mappings that the kernel
/// allows. Returns at least one.
fn cap_instances(wanted: u32, max_mappings: u64) -> u32 {
    let possible = max_mappings.saturating_sub(MAPPINGS_RESERVED) / MAPPINGS_PER_GUEST;
    wanted.min(u32::try_from(possible).unwrap_or(u32::MAX)).max(1)
}

fn max_mappings() -> u64 {
    std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(DEFAULT_MAX_MAPPINGS)
}

/// Starts the ticker in a separate thread: the guests that the ticker must interrupt could starve a
/// task of the async runtime.
fn start_ticker(engine: EngineWeak) -> Result<(), Error> {
    let tick = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(EPOCH_INTERVAL);
        }
    };
    let thread = std::thread::Builder::new().name("wattle-ticker".to_owned());
    thread.spawn(tick).map(drop).map_err(Error::Ticker)
}

#[cfg(test)]
mod tests {
    use wattle_run::memory_budget::DEFAULT_BUDGET;

    use super::*;

    #[test]
    fn engines_load_the_code_of_the_compile_engine_for_their_abi() {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let hash = |engine: &Engine| {
            let mut hasher = DefaultHasher::new();
            engine.precompile_compatibility_hash().hash(&mut hasher);
            hasher.finish()
        };
        let hashes = [Abi::Synchronous, Abi::Asynchronous].map(|abi| {
            let room = Room::new(abi, 2, DEFAULT_BUDGET.guests_bytes);
            let running = Engine::new(&config(abi, &room)).unwrap();
            assert_eq!(hash(&running), hash(&create_compile_engine(abi).unwrap()));
            hash(&running)
        });
        assert_ne!(hashes[0], hashes[1], "an engine refuses the code of the other one");
    }

    #[test]
    fn number_of_asynchronous_guests_is_a_fraction_of_all_with_a_minimum() {
        let instances =
            |guests| Room::new(Abi::Asynchronous, guests, DEFAULT_BUDGET.guests_bytes).instances;
        assert_eq!((instances(1_000), instances(8)), (125, LEAST_ASYNC_INSTANCES));
    }

    #[test]
    fn freed_slots_keep_a_fraction_of_the_memory_of_all_guests() {
        let all = DEFAULT_BUDGET.guests_bytes;
        let kept = kept_bytes(1_000, all) as u64;
        assert!(kept >= 256 << 10 && kept * 1_000 <= all / limit::KEPT_MEMORY_DIVISOR);
        assert_eq!(kept_bytes(8, all) as u64, KEEP_RESIDENT_BYTES);
        assert_eq!(kept_bytes(1_000, 0), 0);
    }

    #[test]
    fn the_pool_stays_below_the_limit_on_mappings() {
        assert_eq!(cap_instances(1_000, DEFAULT_MAX_MAPPINGS), 1_000);
        assert_eq!(cap_instances(100_000, DEFAULT_MAX_MAPPINGS), 5_230);
        assert_eq!(cap_instances(100, 0), 1);
    }
}
