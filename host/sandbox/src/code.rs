//! Compiled code of a component, ready to be instantiated, without name or description.

use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, Instance, InstancePre, TypedFunc};

use crate::bindings::exports::wattle::plugin::{node, reducer, tool, web};
use crate::bindings::wattle::plugin::types;
use crate::guest::Guest;

/// Compiled code with the places of its exports.
pub(crate) struct Code {
    pub(crate) pre: InstancePre<Guest>,
    pub(crate) exports: Exports,
}

/// Where the functions of each exported interface are; `None` for what a component is not.
#[derive(Default)]
pub(crate) struct Exports {
    pub(crate) node: Option<NodeExport>,
    pub(crate) tool: Option<tool::GuestIndices>,
    pub(crate) reducer: Option<reducer::GuestIndices>,
    pub(crate) web: Option<web::GuestIndices>,
}

/// Where the functions of `wattle:plugin/node` are.
pub(crate) struct NodeExport {
    describe: ComponentExportIndex,
    run: ComponentExportIndex,
}

/// `node.describe` of an instance.
type Describe = TypedFunc<(), (Vec<node::NodeInfo>,)>;

/// `node.run` of an instance.
type Run = TypedFunc<(node::TaskContext, String), (Result<node::Outcome, types::Failure>,)>;

impl NodeExport {
    /// The interface's name with the version that lookups are compatible with.
    const INTERFACE: &str = "wattle:plugin/node@0.1.0";

    /// Looks the functions up by name.
    pub(crate) fn new(pre: &InstancePre<Guest>) -> wasmtime::Result<Self> {
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

    /// The function that lists nodes, with its type checked.
    pub(crate) fn describe(
        &self,
        store: &mut Store<Guest>,
        instance: &Instance,
    ) -> wasmtime::Result<Describe> {
        instance.get_typed_func(store, self.describe)
    }

    /// The function that runs a node, with its type checked.
    pub(crate) fn run(
        &self,
        store: &mut Store<Guest>,
        instance: &Instance,
    ) -> wasmtime::Result<Run> {
        instance.get_typed_func(store, self.run)
    }
}
