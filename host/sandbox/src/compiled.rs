//! Compiled code of a component, ready to be instantiated, without name or description.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use wasmtime::Store;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentNamedList, Instance, InstancePre, Lift, Lower,
    TypedFunc,
};
use wattle_run::memory_pool::Occupied;

use crate::bindings::exports::wattle::plugin::{node, reducer, tool, web};
use crate::bindings::wattle::plugin::types;
use crate::engine::Abi;
use crate::guest_pool::GuestPool;
use crate::host_state::HostState;
use crate::typed::TypedFunction;

/// Bytes of a page of linear memory.
const WASM_PAGE_BYTES: u64 = 64 << 10;

/// Compiled code with its exported functions.
pub(crate) struct CompiledComponent {
    pub(crate) pre: InstancePre<HostState>,
    pub(crate) exports: Exports,
    /// The ABI of the engine that runs the code.
    pub(crate) abi: Abi,
    /// The places that guests of this component take in the engine.
    pub(crate) places: Places,
    /// The pool of the memory of all guests of the host.
    pub(crate) guests_memory: GuestPool,
    /// Initial size of the largest memory of an instance, in bytes.
    pub(crate) first_memory_bytes: u64,
    /// The memory of the code.
    pub(crate) _memory: Occupied,
}

/// The places of guests in an engine, of which each app has a share.
pub(crate) struct Places {
    pub(crate) pool: GuestPool,
    /// The number of places that one guest takes.
    pub(crate) of_one_guest: u64,
}

/// Returns the initial size of the largest memory of a component, in bytes.
pub(crate) fn first_memory_bytes(component: &Component) -> u64 {
    // A component that imports modules is rejected when it is loaded.
    let required = component.resources_required();
    let pages = required.and_then(|required| required.max_initial_memory_size);
    pages.unwrap_or_default().saturating_mul(WASM_PAGE_BYTES)
}

/// The functions of each exported interface; `None` for an interface that the component does not
/// export.
#[derive(Default)]
pub(crate) struct Exports {
    pub(crate) node: Option<NodeExport>,
    pub(crate) tool: Option<ToolExport>,
    pub(crate) reducer: Option<ReducerExport>,
    pub(crate) web: Option<WebExport>,
    /// Functions of a typed component. A component with other exports has none.
    pub(crate) typed: Vec<TypedFunction>,
}

/// The functions of `wattle:plugin/node`.
pub(crate) struct NodeExport {
    pub(crate) describe: ExportedFunction<(), (Vec<node::NodeInfo>,)>,
    pub(crate) run: ExportedFunction<(node::TaskContext, String), Fallible<node::Outcome>>,
}

/// The functions of `wattle:plugin/tool`.
pub(crate) struct ToolExport {
    pub(crate) list: ExportedFunction<(), (Vec<tool::ToolInfo>,)>,
    pub(crate) call: ExportedFunction<(tool::CallContext, String), Fallible<tool::ToolOutput>>,
}

/// The functions of `wattle:plugin/reducer`.
pub(crate) struct ReducerExport {
    pub(crate) reducers: ExportedFunction<(), (Vec<reducer::ReducerInfo>,)>,
    pub(crate) reduce: ExportedFunction<(String, Option<String>, Vec<String>), Fallible<String>>,
}

/// The functions of `wattle:plugin/web`.
pub(crate) struct WebExport {
    pub(crate) routes: ExportedFunction<(), (Vec<web::Route>,)>,
    pub(crate) handle: ExportedFunction<(web::Request,), Fallible<web::Response>>,
}

/// The result of a function that may return a failure.
pub(crate) type Fallible<T> = (Result<T, types::Failure>,);

impl Exports {
    /// Looks up the functions of the interfaces for which `is_exported` returns true.
    pub(crate) fn find(
        component: &Component,
        is_exported: impl Fn(&str) -> bool,
    ) -> wasmtime::Result<Self> {
        let find = |name: &str| {
            is_exported(name).then(|| ExportedInterface::find(component, name)).transpose()
        };
        Ok(Self {
            node: find("node")?.map(|interface| NodeExport::new(&interface)).transpose()?,
            tool: find("tool")?.map(|interface| ToolExport::new(&interface)).transpose()?,
            reducer: find("reducer")?
                .map(|interface| ReducerExport::new(&interface))
                .transpose()?,
            web: find("web")?.map(|interface| WebExport::new(&interface)).transpose()?,
            typed: Vec::new(),
        })
    }

    /// Returns the function of a typed component that implements a tool.
    pub(crate) fn typed_function(&self, tool: &str) -> Option<&TypedFunction> {
        self.typed.iter().find(|function| function.tool == tool)
    }
}

impl NodeExport {
    fn new(interface: &ExportedInterface<'_>) -> wasmtime::Result<Self> {
        Ok(Self { describe: interface.function("describe")?, run: interface.function("run")? })
    }
}

impl ToolExport {
    fn new(interface: &ExportedInterface<'_>) -> wasmtime::Result<Self> {
        Ok(Self { list: interface.function("list")?, call: interface.function("call")? })
    }
}

impl ReducerExport {
    fn new(interface: &ExportedInterface<'_>) -> wasmtime::Result<Self> {
        let (reducers, reduce) = (interface.function("reducers")?, interface.function("reduce")?);
        Ok(Self { reducers, reduce })
    }
}

impl WebExport {
    fn new(interface: &ExportedInterface<'_>) -> wasmtime::Result<Self> {
        Ok(Self { routes: interface.function("routes")?, handle: interface.function("handle")? })
    }
}

/// An exported interface of the contract.
struct ExportedInterface<'a> {
    component: &'a Component,
    /// Name with the version `0.1.0`. wasmtime also finds compatible versions by this name.
    name: String,
    index: ComponentExportIndex,
}

impl<'a> ExportedInterface<'a> {
    fn find(component: &'a Component, name: &str) -> wasmtime::Result<Self> {
        let name = format!("wattle:plugin/{name}@0.1.0");
        match component.get_export_index(None, &name) {
            Some(index) => Ok(Self { component, name, index }),
            None => Err(wasmtime::Error::msg(format!("there is no interface `{name}`"))),
        }
    }

    /// Looks up a function by its name. [`ExportedFunction::typed`] checks the type of the
    /// function.
    fn function<P, R>(&self, name: &str) -> wasmtime::Result<ExportedFunction<P, R>> {
        match self.component.get_export_index(Some(&self.index), name) {
            Some(index) => Ok(ExportedFunction {
                index,
                is_checked: AtomicBool::new(false),
                types: PhantomData,
            }),
            None => {
                let message = format!("`{}` has no function `{name}`", self.name);
                Err(wasmtime::Error::msg(message))
            }
        }
    }
}

/// An exported function with the types of its parameters and of its results. Neither contains a
/// resource.
pub(crate) struct ExportedFunction<P, R> {
    index: ComponentExportIndex,
    /// True once wasmtime has found that the function has the types `P` and `R`.
    is_checked: AtomicBool,
    types: PhantomData<fn(P) -> R>,
}

impl<P, R> ExportedFunction<P, R>
where
    P: ComponentNamedList + Lower,
    R: ComponentNamedList + Lift,
{
    /// Returns the function of an instance, and checks its type the first time. wasmtime compares
    /// the names of all fields and cases of a type, which every call of a guest would pay for.
    #[expect(unsafe_code, reason = "wasmtime has no safe way to omit the check of the type")]
    pub(crate) fn typed(
        &self,
        store: &mut Store<HostState>,
        instance: &Instance,
    ) -> wasmtime::Result<TypedFunc<P, R>> {
        if self.is_checked.load(Ordering::Relaxed)
            && let Some(function) = instance.get_func(&mut *store, self.index)
        {
            // SAFETY: `get_func` finds an index only in instances of the component that the index
            // is from. wasmtime has found that this export of the component has these types, and
            // types without resources are the same in each instance of a component.
            return Ok(unsafe { TypedFunc::new_unchecked(function) });
        }
        let function = instance.get_typed_func(store, self.index)?;
        self.is_checked.store(true, Ordering::Relaxed);
        Ok(function)
    }
}
