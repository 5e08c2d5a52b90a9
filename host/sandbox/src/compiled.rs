//! Compiled code of a component, ready to be instantiated, without name or description.

use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, Instance, InstancePre, TypedFunc};

use crate::bindings::exports::wattle::plugin::{node, reducer, tool, web};
use crate::bindings::wattle::plugin::types;
use crate::guests_memory::GuestsMemory;
use crate::host_state::HostState;

/// Bytes of a page of linear memory.
const WASM_PAGE_BYTES: u64 = 64 << 10;

/// Compiled code with the indexes of its exports.
pub(crate) struct CompiledComponent {
    pub(crate) pre: InstancePre<HostState>,
    pub(crate) exports: Exports,
    /// The memory of all guests of the host.
    pub(crate) guests_memory: GuestsMemory,
    /// Initial size of the largest memory of an instance, in bytes.
    pub(crate) first_memory_bytes: u64,
}

/// Returns the initial size of the largest memory of a component, in bytes.
pub(crate) fn first_memory_bytes(component: &Component) -> u64 {
    // A component that imports modules is rejected when it is loaded.
    let required = component.resources_required();
    let pages = required.and_then(|required| required.max_initial_memory_size);
    pages.unwrap_or_default().saturating_mul(WASM_PAGE_BYTES)
}

/// Indexes of the functions of each exported interface; `None` for an interface that the component
/// does not export.
#[derive(Default)]
pub(crate) struct Exports {
    pub(crate) node: Option<NodeExport>,
    pub(crate) tool: Option<tool::GuestIndices>,
    pub(crate) reducer: Option<reducer::GuestIndices>,
    pub(crate) web: Option<web::GuestIndices>,
}

/// Indexes of the functions of `wattle:plugin/node`.
pub(crate) struct NodeExport {
    describe: ComponentExportIndex,
    run: ComponentExportIndex,
}

/// Type of `node.describe`.
type DescribeFn = TypedFunc<(), (Vec<node::NodeInfo>,)>;

/// Type of `node.run`.
type RunFn = TypedFunc<(node::TaskContext, String), (Result<node::Outcome, types::Failure>,)>;

impl NodeExport {
    /// Name of the interface, with the version that lookups are compatible with.
    const INTERFACE: &str = "wattle:plugin/node@0.1.0";

    /// Looks the functions up by name.
    pub(crate) fn new(pre: &InstancePre<HostState>) -> wasmtime::Result<Self> {
        let component = pre.component();
        let missing = |what: &str| {
            wasmtime::Error::msg(format!("`{}` has no function `{what}`", Self::INTERFACE))
        };
        let interface =
            component.get_export_index(None, Self::INTERFACE).ok_or_else(|| missing("describe"))?;
        let find = |name: &str| {
            component.get_export_index(Some(&interface), name).ok_or_else(|| missing(name))
        };
        Ok(Self { describe: find("describe")?, run: find("run")? })
    }

    /// Returns the function that lists nodes, and checks its type.
    pub(crate) fn describe(
        &self,
        store: &mut Store<HostState>,
        instance: &Instance,
    ) -> wasmtime::Result<DescribeFn> {
        instance.get_typed_func(store, self.describe)
    }

    /// Returns the function that runs a node, and checks its type.
    pub(crate) fn run(
        &self,
        store: &mut Store<HostState>,
        instance: &Instance,
    ) -> wasmtime::Result<RunFn> {
        instance.get_typed_func(store, self.run)
    }
}
