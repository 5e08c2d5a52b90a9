//! The data of a store for one guest call.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::WasiCtx;
use wattle_run::gate::Effect;
use wattle_run::gate::Gate;
use wattle_run::limit::Limits;

use crate::cpu::{Cpu, DEADLINE_TICKS};
use crate::halt::{Halt, Trapped};
use crate::meter::Meter;
use crate::wasi;

/// Maximum number of host resources that one guest may hold open: transactions, model streams, and
/// pollables and streams of WASI guests.
const RESOURCES: usize = 1_000;

/// The host's side of one guest call.
pub(crate) struct Guest {
    gate: Option<Arc<Gate>>,
    pub(crate) table: ResourceTable,
    pub(crate) cpu: Cpu,
    pub(crate) meter: Meter,
    wasi: Option<Box<WasiCtx>>,
}

impl Guest {
    /// Creates the wasmtime store of one guest call, with its limits. Without a gate, a call of any
    /// function of `wattle:plugin` traps.
    pub(crate) fn store(
        engine: &wasmtime::Engine,
        gate: Option<Arc<Gate>>,
        limits: &Limits,
    ) -> Store<Self> {
        let mut table = ResourceTable::new();
        table.set_max_capacity(RESOURCES);
        let guest = Self {
            gate,
            table,
            cpu: Cpu::new(limits.cpu_ms),
            meter: Meter::new(limits.memory_bytes),
            wasi: None,
        };
        let mut store = Store::new(engine, guest);
        store.limiter(|guest| &mut guest.meter);
        store.set_hostcall_fuel(usize::try_from(limits.lift_bytes).unwrap_or(usize::MAX));
        store.set_max_component_handles(RESOURCES);
        store.epoch_deadline_callback(|mut context| context.data_mut().cpu.tick());
        store.set_epoch_deadline(DEADLINE_TICKS);
        store
    }

    /// Returns the gate for a host function. Traps if there is no gate.
    pub(crate) fn gate(&self, function: &'static str) -> Result<Arc<Gate>, Trapped> {
        self.gate.clone().ok_or(Trapped::Forbidden(function))
    }

    /// Awaits a future without charging its duration to the guest's CPU time.
    pub(crate) async fn outside<F: Future>(&mut self, work: F) -> F::Output {
        self.cpu.stop();
        let output = work.await;
        self.cpu.start();
        output
    }

    /// Makes one host call.
    pub(crate) async fn call<C: Effect>(&mut self, call: C) -> Result<C::Answer, Halt> {
        let gate = self.gate(C::FUNCTION)?;
        Ok(self.outside(gate.call(call)).await?)
    }

    /// Returns the empty WASI context and the table of its resources.
    pub(crate) fn wasi(&mut self) -> (&mut WasiCtx, &mut ResourceTable) {
        let gate = &self.gate;
        let context = self.wasi.get_or_insert_with(|| Box::new(wasi::context(gate.as_ref())));
        (context, &mut self.table)
    }
}
