//! One guest call: a fresh store and instance, one exported function, one outcome.

pub(crate) mod node;
pub(crate) mod output_json;
pub(crate) mod reduce;
pub(crate) mod tool;
pub(crate) mod typed;
pub(crate) mod web;
pub(crate) mod write;

use std::pin::{Pin, pin};
use std::sync::Arc;

use futures::future::BoxFuture;
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, ComponentNamedList, Instance, Lift, Lower, Val};
use wattle_graph::definition::ByteSize;
use wattle_graph::failure::{Failure, code};
use wattle_run::blocking::is_long_parse;
use wattle_run::gate::{AwaitedBy, Gate};
use wattle_run::grant::Grants;
use wattle_run::limit::Limits;
use wattle_run::ports::sandbox::GuestError;

use crate::compiled::{CompiledComponent, ExportedFunction, Fallible, Places};
use crate::concurrent_calls::{ConcurrentCalls, ends_calls};
use crate::engine::Abi;
use crate::guest_error::{self, Callee};
use crate::guest_pool::{PoolLease, PoolOwner};
use crate::host_state::HostState;
use crate::import_error::TrapReason;
use crate::memory_meter::{LimitedResource, MemoryMeter, allowed_memory};
use crate::typed::values_memory::ValuesMemory;

/// A guest call, ready to start.
pub(crate) struct GuestCall<'a> {
    pub(crate) code: &'a CompiledComponent,
    pub(crate) gate: Option<Arc<Gate>>,
    pub(crate) owner: Arc<PoolOwner>,
    pub(crate) awaited_by: AwaitedBy,
    pub(crate) limits: &'a Limits,
    pub(crate) callee: Callee<'a>,
    /// The grants whose environment and folders the guest gets.
    pub(crate) given: Option<&'a Grants>,
}

/// A fresh instance and its store. The end of the call drops both.
pub(crate) struct GuestInstance<'a> {
    pub(crate) store: Store<HostState>,
    pub(crate) instance: Instance,
    abi: Abi,
    limits: &'a Limits,
    callee: Callee<'a>,
    /// Declared after `store`, because fields are dropped in this order: the memory returns to the
    /// pool only after the store has freed it.
    _memory: Arc<PoolLease>,
    /// Declared after `store` for the same reason as `_memory`.
    _place: PoolLease,
}

impl<'a> GuestCall<'a> {
    /// Creates a call of a guest whose host calls go through `gate`. The gate checks, performs and
    /// journals these host calls (see [`Gate`]).
    pub(crate) fn with_gate(
        code: &'a CompiledComponent,
        gate: &'a Arc<Gate>,
        callee: Callee<'a>,
    ) -> Self {
        let owner = Arc::new(PoolOwner::App(gate.caller().app.clone()));
        let (awaited_by, limits) = (gate.awaited_by(), gate.limits());
        let gate = Some(Arc::clone(gate));
        Self { code, gate, owner, awaited_by, limits, callee, given: None }
    }

    /// Gives the guest the environment and the folders of grants.
    pub(crate) fn giving(self, grants: &'a Grants) -> Self {
        Self { given: Some(grants), ..self }
    }

    /// Waits for a place in the engine and for memory, and instantiates the code.
    pub(crate) async fn instantiate(self) -> Result<GuestInstance<'a>, GuestError> {
        // All guests wait in this order, so that no guest holds memory while it waits for a place.
        let place = self.take_place().await?;
        let Self { code, gate, owner, awaited_by, limits, callee, given } = self;
        let allowed = allowed_memory(limits.memory_bytes, &code.guests_memory);
        let first = code.first_memory_bytes.min(allowed);
        let Some(memory) = code.guests_memory.enter(owner, first, awaited_by).await else {
            let total = code.guests_memory.total();
            return Err(GuestError::Host(guest_error::guests_memory_exhausted(callee, total)));
        };
        let memory = Arc::new(memory);
        let meter = MemoryMeter::new(allowed, memory.clone());
        let mut store = HostState::new_store(code.pre.engine(), gate, limits, meter);
        if let Some(grants) = given {
            store.data_mut().give(grants).map_err(GuestError::Host)?;
        }
        let abi = code.abi;
        // The start function of a component can also make requests of `wasi:http`.
        let calls = store.data().calls.clone();
        let instantiated =
            until_unwound(&calls, pin!(code.pre.instantiate_async(&mut store))).await;
        let made = match instantiated {
            Ok(instance) => Ok(instance),
            Err(error) => settle(&mut store, Err(error)).await,
        };
        match made {
            Ok(instance) => Ok(GuestInstance {
                store,
                instance,
                abi,
                limits,
                callee,
                _memory: memory,
                _place: place,
            }),
            Err(error) => {
                Err(guest_error::from_wasmtime_error(error, store.data(), limits, callee))
            }
        }
    }

    /// Waits for a place in the engine.
    async fn take_place(&self) -> Result<PoolLease, GuestError> {
        let Places { pool, of_one_guest } = &self.code.places;
        let place = pool.enter(self.owner_of_place(), *of_one_guest, self.awaited_by).await;
        place.ok_or_else(|| {
            let (abi, total) = (self.code.abi, pool.total());
            GuestError::Host(guest_error::places_exhausted(self.callee, abi, total))
        })
    }

    /// Returns the owner of the place. A web handler can wait for a run of its app. The places of
    /// handlers therefore count apart from those of runs: otherwise, a run could wait for the place
    /// of a handler that waits for this run.
    fn owner_of_place(&self) -> Arc<PoolOwner> {
        match (&*self.owner, &self.gate) {
            (PoolOwner::App(app), Some(gate)) if gate.is_of_handler() => {
                Arc::new(PoolOwner::Handlers(app.clone()))
            }
            _ => Arc::clone(&self.owner),
        }
    }
}

impl<'a> GuestInstance<'a> {
    /// Calls an exported function. Ends the call when a concurrent host call unwinds the guest.
    pub(crate) async fn call<P, R>(
        &mut self,
        function: &ExportedFunction<P, R>,
        parameters: P,
    ) -> wasmtime::Result<R>
    where
        P: ComponentNamedList + Lower + 'static,
        R: ComponentNamedList + Lift + 'static,
    {
        let calls = self.concurrent_calls();
        let called = async {
            let function = function.typed(&mut self.store, &self.instance)?;
            match self.abi {
                Abi::Synchronous => function.call_async(&mut self.store, parameters).await,
                // This must not be `call_async`: when a call fails or is dropped, `call_async`
                // reads which task was running. If this task was in a nested component, its record
                // was on the stack of the guest, which is freed by then.
                Abi::Asynchronous => {
                    self.store
                        .run_concurrent(async |tasks| {
                            function.call_concurrent(tasks, parameters).await
                        })
                        .await?
                }
            }
        };
        let done = until_unwound(&calls, pin!(called)).await;
        self.store.data_mut().cpu.leave_guest();
        done
    }

    /// Calls an exported function whose types are known only at run time, like [`Self::call`].
    pub(crate) async fn call_dynamic(
        &mut self,
        function: ComponentExportIndex,
        parameters: &[Val],
        results: &mut [Val],
    ) -> wasmtime::Result<()> {
        let calls = self.concurrent_calls();
        let called = async {
            let function = self.instance.get_func(&mut self.store, function);
            let function =
                function.ok_or_else(|| wasmtime::Error::msg("the function is missing"))?;
            // `call_async` is right for both ABIs here: unlike `TypedFunc::call_async`, this
            // function reads no task when the call fails or is dropped.
            function.call_async(&mut self.store, parameters, results).await
        };
        let done = until_unwound(&calls, pin!(called)).await;
        self.store.data_mut().cpu.leave_guest();
        done
    }

    /// Counts `bytes` bytes of texts that the guest gets as memory of guests, since the host holds
    /// them until the guest ends. Short texts do not count. If that memory does not suffice, the
    /// caller must [`refuse`](Self::refuse) the call.
    pub(crate) fn hold_texts(&mut self, bytes: usize) -> Result<(), GuestError> {
        if !is_long_parse(bytes) {
            return Ok(());
        }
        let (bytes, memory) = (bytes as u64, &mut self.store.data_mut().memory);
        let most = memory.most_values_bytes();
        if bytes > most {
            let failure = guest_error::texts_exceed_memory(self.callee, bytes, most);
            return Err(GuestError::Limit(failure));
        }
        if memory.hold_values(bytes) {
            return Ok(());
        }
        let total = memory.allowed(LimitedResource::GuestsMemory);
        Err(GuestError::Host(guest_error::guests_memory_exhausted(self.callee, total)))
    }

    /// Returns the meter of the memory that parameters of [`Self::call_dynamic`] take.
    pub(crate) fn values_memory(&mut self) -> ValuesMemory<'_> {
        let copies = match self.abi {
            Abi::Synchronous => 1,
            // wasmtime copies the parameters before the guest gets them.
            Abi::Asynchronous => 2,
        };
        ValuesMemory::new(&mut self.store.data_mut().memory, copies)
    }

    /// Returns the memory of the parameters to the pool. The caller must have dropped the
    /// parameters.
    pub(crate) fn release_values(&mut self) {
        self.store.data_mut().memory.release_values();
    }

    /// Returns the host calls that run concurrently with the guest.
    fn concurrent_calls(&self) -> ConcurrentCalls {
        self.store.data().calls.clone()
    }

    /// Waits until all requests of `wasi:http` of the guest have responses. Then returns the result
    /// of the guest, or the error that ended the guest. Drops the instance and its
    /// [`wasmtime::Store`].
    pub(crate) async fn finish<T>(mut self, done: wasmtime::Result<T>) -> Result<T, GuestError> {
        let done = settle(&mut self.store, done).await;
        done.map_err(|error| {
            guest_error::from_wasmtime_error(error, self.store.data(), self.limits, self.callee)
        })
    }

    /// Ends a call whose function cannot be called because of `error`. Returns `error`, or the error
    /// of a request of `wasi:http` that the start function of the component made.
    ///
    /// The future is boxed: few calls need it, and it would make the futures of all calls larger.
    pub(crate) fn refuse(self, error: GuestError) -> BoxFuture<'a, GuestError> {
        Box::pin(async move { self.finish(Ok(())).await.err().unwrap_or(error) })
    }

    /// Does the same as [`Self::finish`] for a function that may return a failure. Returns the
    /// output of the function.
    pub(crate) async fn finish_fallible<T>(
        mut self,
        done: wasmtime::Result<Fallible<T>>,
    ) -> Result<T, GuestError> {
        let done = settle(&mut self.store, done).await;
        let (guest, limits, callee) = (self.store.data(), self.limits, self.callee);
        match done {
            Ok((Err(failure),)) => {
                Err(guest_error::from_failure(failure.into(), guest, limits, callee))
            }
            Ok((Ok(output),)) => Ok(output),
            Err(error) => Err(guest_error::from_wasmtime_error(error, guest, limits, callee)),
        }
    }
}

/// Waits for the responses of `wasi:http` that an ended guest did not wait for, and returns `done`
/// or the error of a request. A guest that trapped or raised an interrupt can be executed again,
/// and must then find the results of its requests in the journal. After a cancel or the loss of the
/// log, no request continues, so this function does not wait.
async fn settle<T>(store: &mut Store<HostState>, done: wasmtime::Result<T>) -> wasmtime::Result<T> {
    if let Err(error) = &done
        && let Some(TrapReason::Unwind(reason)) = error.downcast_ref()
        && ends_calls(reason)
    {
        return done;
    }
    if let Err(reason) = store.data_mut().settle_http().await
        && (done.is_ok() || ends_calls(&reason))
    {
        return Err(TrapReason::Unwind(reason).into());
    }
    done
}

/// Awaits `work` of a guest together with its concurrent host calls. Returns an error when a host
/// call unwinds the guest. The caller must then drop `work`, which ends the guest.
async fn until_unwound<T>(
    calls: &ConcurrentCalls,
    work: Pin<&mut impl Future<Output = wasmtime::Result<T>>>,
) -> wasmtime::Result<T> {
    match calls.run_beside(work).await {
        Ok(done) => done,
        Err(reason) => Err(TrapReason::Unwind(reason).into()),
    }
}

/// Returns the error of a component that does not export the interface that the call needs.
pub(crate) fn missing_export(callee: Callee<'_>, interface: &str) -> GuestError {
    GuestError::Host(Failure::new(
        code::INVALID,
        format!("cannot run {callee}: the plugin does not export `wattle:plugin/{interface}`"),
    ))
}

/// Returns the error of a guest whose result violates the contract.
pub(crate) fn invalid_result(
    callee: Callee<'_>,
    what: &str,
    error: &dyn std::fmt::Display,
) -> GuestError {
    GuestError::Failure(Failure::new(code::INVALID, format!("{callee} returned {what}: {error}")))
}

/// Checks the size of a result against the output limit.
pub(crate) fn check_output_size(
    bytes: usize,
    limits: &Limits,
    callee: Callee<'_>,
) -> Result<(), GuestError> {
    if bytes as u64 <= limits.output_bytes {
        return Ok(());
    }
    Err(output_exceeded(limits, callee))
}

/// Returns the error of a result that exceeds the output limit.
pub(crate) fn output_exceeded(limits: &Limits, callee: Callee<'_>) -> GuestError {
    GuestError::Limit(guest_error::limit_exceeded(
        callee,
        "output",
        limits.output_bytes,
        &format!("{} of output", ByteSize(limits.output_bytes)),
    ))
}
