//! Setup of wasmtime, and the thread that makes guests interruptible.

use std::num::NonZeroUsize;

use wasmtime::{
    Config, Enabled, Engine, EngineWeak, InstanceAllocationStrategy, PoolingAllocationConfig,
    WasmBacktraceDetails, WasmFeatures,
};
use wattle_run::limit;

use crate::cpu_meter::EPOCH_INTERVAL;
use crate::error::Error;
use crate::memory_meter::{MAX_MEMORIES, MAX_TABLES};

/// Stack of guest code, in bytes. Deep recursion traps at its end.
const WASM_STACK_BYTES: usize = 512 << 10;

/// Stack of a fiber, in bytes: guest code and the host functions that it calls. Guest code leaves
/// far more than host functions need. An overflow would abort the process.
const FIBER_STACK_BYTES: usize = 2 << 20;

/// Maximum memory of a freed slot that stays resident for its next guest, in bytes. It saves page
/// faults. No guest counts it, so the slots of a large pool keep less; see [`kept_bytes`].
const KEEP_RESIDENT_BYTES: u64 = 2 << 20;

/// Memory of a freed table that stays resident for its next guest, in bytes.
const TABLE_KEEP_RESIDENT_BYTES: usize = 4 << 10;

/// Core instances that the pool reserves for each component. A component of Python has sixteen.
const CORE_INSTANCES_PER_GUEST: u32 = 16;

/// Tables that the pool reserves for each component.
const TABLES_PER_GUEST: u32 = 4;

/// Maximum number of stack frames in the message of a trap.
const MAX_BACKTRACE_FRAMES: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4);

/// Memory mappings of a live guest: two for its fiber, four for its memory.
const MAPPINGS_PER_GUEST: u64 = 6;

/// Memory mappings left to the rest of the process. At the kernel's limit, `malloc` fails and the
/// process aborts, so the pool must end well before it.
const MAPPINGS_RESERVED: u64 = 8_000;

/// Default limit of Linux on memory mappings.
const DEFAULT_MAX_MAPPINGS: u64 = 65_530;

/// Creates an engine for `wanted_instances` guests at once, or for as many as the kernel has room
/// for, and starts its ticker. The ticker ends with the engine. `guests_memory_bytes` is the limit
/// of the memory of all guests, which the caller enforces.
pub(crate) fn create_engine(
    wanted_instances: u32,
    guests_memory_bytes: u64,
) -> Result<Engine, Error> {
    let max_instances = cap_instances(wanted_instances, max_mappings());
    let engine = Engine::new(&config(max_instances, guests_memory_bytes))
        .map_err(|error| Error::Engine { max_instances, message: format!("{error:#}") })?;
    start_ticker(engine.weak())?;
    Ok(engine)
}

/// Creates an engine that only compiles. It reserves no memory for guests, and an engine that runs
/// guests can load its code.
pub(crate) fn create_compile_engine() -> wasmtime::Result<Engine> {
    Engine::new(&code_config())
}

fn config(max_instances: u32, guests_memory_bytes: u64) -> Config {
    let mut config = code_config();
    let pool = pool_config(max_instances, kept_bytes(max_instances, guests_memory_bytes));
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Returns the settings that compiled code depends on.
fn code_config() -> Config {
    let mut config = Config::new();
    config
        .concurrency_support(false)
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

fn pool_config(max_instances: u32, kept_bytes: usize) -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(max_instances)
        .total_core_instances(max_instances.saturating_mul(CORE_INSTANCES_PER_GUEST))
        .total_memories(max_instances)
        .total_tables(max_instances.saturating_mul(TABLES_PER_GUEST))
        .total_stacks(max_instances)
        .max_core_instances_per_component(limit::CORE_INSTANCES)
        .max_memories_per_component(MAX_MEMORIES as u32)
        .max_tables_per_component(MAX_TABLES as u32)
        .table_elements(limit::TABLE_ELEMENTS as usize)
        .linear_memory_keep_resident(kept_bytes)
        .table_keep_resident(TABLE_KEEP_RESIDENT_BYTES)
        .pagemap_scan(Enabled::Auto);
    pool
}

/// Returns the memory of a freed slot that stays resident. All slots together keep a fixed part of
/// the memory of all guests.
fn kept_bytes(max_instances: u32, guests_memory_bytes: u64) -> usize {
    let of_one = guests_memory_bytes / limit::KEPT_MEMORY_DIVISOR / u64::from(max_instances.max(1));
    of_one.min(KEEP_RESIDENT_BYTES) as usize
}

/// Caps the number of instances by the mappings that the kernel allows. Returns at least one.
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

/// Starts the ticker in a thread of its own: a task of the async runtime would be starved by the
/// very guests that it must interrupt.
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
    use super::*;

    #[test]
    fn code_of_the_compiling_engine_fits_the_running_engine() {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let hash = |engine: &Engine| {
            let mut hasher = DefaultHasher::new();
            engine.precompile_compatibility_hash().hash(&mut hasher);
            hasher.finish()
        };
        let running = Engine::new(&config(2, limit::GUESTS_MEMORY_BYTES)).unwrap();
        assert_eq!(hash(&running), hash(&create_compile_engine().unwrap()));
    }

    #[test]
    fn freed_slots_keep_a_part_of_the_memory_of_all_guests() {
        let all = limit::GUESTS_MEMORY_BYTES;
        let kept = kept_bytes(1_000, all) as u64;
        assert!(kept >= 256 << 10 && kept * 1_000 <= all / limit::KEPT_MEMORY_DIVISOR);
        assert_eq!(kept_bytes(8, all) as u64, KEEP_RESIDENT_BYTES);
        assert_eq!(kept_bytes(1_000, 0), 0);
    }

    #[test]
    fn the_pool_stays_below_the_limit_on_mappings() {
        assert_eq!(cap_instances(1_000, DEFAULT_MAX_MAPPINGS), 1_000);
        assert_eq!(cap_instances(100_000, DEFAULT_MAX_MAPPINGS), 9_588);
        assert_eq!(cap_instances(100, 0), 1);
    }
}
