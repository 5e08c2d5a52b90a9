//! The data of a wasmtime store for one guest call.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::WasiCtx;
use wattle_graph::failure::Failure;
use wattle_run::gate::Effect;
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::Unwind;
use wattle_run::grant::Grants;
use wattle_run::limit::Limits;

use crate::concurrent_calls::ConcurrentCalls;
use crate::cpu_meter::{CpuMeter, EPOCH_DEADLINE};
use crate::guest_output::GuestOutput;
use crate::import_error::{ImportError, TrapReason};
use crate::memory_meter::MemoryMeter;
use crate::wasi::constants::Constants;
use crate::wasi::context::{context_with, empty_context};
use crate::wasi::folders::OpenFolder;
use crate::wasi::http::GuestHttp;

/// Maximum number of host resources that one guest may hold open: transactions, model streams, and
/// pollables and streams of WASI guests.
const MAX_RESOURCES: usize = 1_000;

/// Maximum number of host resources that a guest with folders may hold open. Each resource can be
/// an open file, and a listing of a folder can be two. All guests and connections share the limited
/// number of open files of the process.
const MAX_RESOURCES_WITH_FOLDERS: usize = 100;

/// Maximum number of tasks of one guest with the asynchronous ABI. The call of an exported function
/// is a task, and so is each call between the components of a composed guest. A task that waits
/// keeps its stack.
pub(crate) const MAX_TASKS: u32 = 10;

/// Entries of wasmtime's table of tasks that one task takes. Each waitable set, stream or future of
/// a guest takes one entry of the same table, so a guest can have these only if it has fewer than
/// [`MAX_TASKS`] tasks.
const PLACES_PER_TASK: usize = 3;

/// The host's side of one guest call.
pub(crate) struct HostState {
    gate: Option<Arc<Gate>>,
    pub(crate) table: ResourceTable,
    pub(crate) cpu: CpuMeter,
    pub(crate) memory: MemoryMeter,
    pub(crate) output: GuestOutput,
    wasi: Option<Box<WasiCtx>>,
    wasi_http: Option<Box<GuestHttp>>,
    /// Host calls for requests of `wasi:http`.
    pub(crate) calls: ConcurrentCalls,
    /// The folders that the guest may use.
    pub(crate) folders: Vec<OpenFolder>,
    /// Fixed clocks and random numbers that WASI gives a guest without a [`Gate`]; `None` until the
    /// guest first uses them.
    constants: Option<Box<Constants>>,
    /// True once the guest has tried to use a socket, and the log has a message about this.
    pub(crate) is_socket_denial_logged: bool,
}

impl Drop for HostState {
    /// Counts what the guest has used for its plugin, however the call has ended.
    fn drop(&mut self) {
        if let Some(gate) = &self.gate {
            gate.plugin_use().add_guest(self.cpu.used(), self.memory.memory_bytes());
        }
    }
}

/// The source of the clocks and random numbers of WASI.
pub(crate) enum WasiSource<'a> {
    /// The gate, which journals the values that the guest reads.
    Gate(Arc<Gate>),
    /// Fixed values, which are the same for every guest without a gate.
    Constants(&'a mut Constants),
}

impl HostState {
    /// Creates the wasmtime store of one guest call, with its limits. Without a gate, a call of any
    /// function of `wattle:plugin` traps, except for `log.write`.
    pub(crate) fn new_store(
        engine: &wasmtime::Engine,
        gate: Option<Arc<Gate>>,
        limits: &Limits,
        memory: MemoryMeter,
    ) -> Store<Self> {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_RESOURCES);
        let guest = Self {
            gate,
            table,
            cpu: CpuMeter::new(limits.cpu_ms),
            memory,
            output: GuestOutput::default(),
            wasi: None,
            wasi_http: None,
            calls: ConcurrentCalls::default(),
            folders: Vec::new(),
            constants: None,
            is_socket_denial_logged: false,
        };
        let mut store = Store::new(engine, guest);
        store.limiter(|guest| &mut guest.memory);
        store.set_hostcall_fuel(usize::try_from(limits.lift_bytes).unwrap_or(usize::MAX));
        store.set_max_component_handles(MAX_RESOURCES);
        // Only the engine for the asynchronous ABI has this table.
        if let Some(tasks) = store.concurrent_resource_table() {
            tasks.set_max_capacity(MAX_TASKS as usize * PLACES_PER_TASK);
        }
        store.epoch_deadline_callback(|mut context| context.data_mut().cpu.on_epoch());
        store.set_epoch_deadline(EPOCH_DEADLINE);
        store
    }

    /// Returns the gate for a host function. Traps if there is no gate.
    pub(crate) fn gate(&self, function: &'static str) -> Result<Arc<Gate>, TrapReason> {
        self.gate.clone().ok_or(TrapReason::NoGate(function))
    }

    /// Returns the source of clocks and random numbers of WASI.
    pub(crate) fn wasi_source(&mut self) -> WasiSource<'_> {
        match &self.gate {
            Some(gate) => WasiSource::Gate(Arc::clone(gate)),
            None => WasiSource::Constants(self.constants.get_or_insert_default()),
        }
    }

    /// Awaits a future without charging its duration to the guest's CPU time.
    pub(crate) async fn off_cpu<F: Future>(&mut self, work: F) -> F::Output {
        self.cpu.leave_guest();
        let output = work.await;
        self.cpu.enter_guest();
        output
    }

    /// Makes one host call.
    pub(crate) async fn call<C: Effect>(&mut self, call: C) -> Result<C::Output, ImportError> {
        let gate = self.gate(C::FUNCTION)?;
        Ok(self.off_cpu(gate.call(call)).await?)
    }

    /// Gives the guest the environment and the folders of grants. The journal does not record reads
    /// from a folder, so only a call whose whole result is journaled may have folders.
    ///
    /// # Errors
    ///
    /// The failure about a folder that cannot be opened.
    pub(crate) fn give(&mut self, grants: &Grants) -> Result<(), Failure> {
        self.folders = grants.folders.iter().map(OpenFolder::open).collect::<Result<_, _>>()?;
        let context = context_with(self.gate.as_ref(), &self.output, &grants.environment);
        self.wasi = Some(Box::new(context));
        if !self.folders.is_empty() {
            self.table.set_max_capacity(MAX_RESOURCES_WITH_FOLDERS);
        }
        Ok(())
    }

    /// Returns the WASI context, which is empty by default, and the table of its resources.
    pub(crate) fn wasi(&mut self) -> (&mut WasiCtx, &mut ResourceTable) {
        let (gate, output) = (self.gate.as_ref(), &self.output);
        let create = || Box::new(empty_context(gate, output));
        (self.wasi.get_or_insert_with(create), &mut self.table)
    }

    /// Returns `wasi:http` of the guest and the table of its resources.
    pub(crate) fn wasi_http(&mut self) -> (&mut GuestHttp, &mut ResourceTable) {
        let (gate, calls) = (&self.gate, &self.calls);
        let create = || Box::new(GuestHttp::new(gate.clone(), calls.clone()));
        (self.wasi_http.get_or_insert_with(create), &mut self.table)
    }

    /// Waits for the responses of `wasi:http` that the ended guest did not wait for. A request
    /// whose body the guest has finished is performed, so that the journal has its result. A
    /// request with an unfinished body is not sent.
    ///
    /// # Errors
    ///
    /// The reason why a request unwinds the guest.
    pub(crate) async fn settle_http(&mut self) -> Result<(), Unwind> {
        if let Some(http) = &self.wasi_http {
            http.end_bodies();
        }
        self.calls.finish().await
    }
}
