//! The component around the modules of [`slow_component`](crate::slow_component) and
//! [`large_code`](crate::large_code).

use wasm_encoder::{
    Component, ComponentExportKind, ComponentExportSection, ComponentInstanceSection,
    InstanceSection, Module, ModuleArg, ModuleSection,
};

/// Returns a component with this many copies of a module, which has no imports, and an instance of
/// each. The component exports a node of the contract without its functions, so it passes the
/// checks before its compilation. Sections can be added to it.
pub(crate) fn node_component(module: &Module, copies: u32) -> Component {
    let mut component = Component::new();
    let mut core_instances = InstanceSection::new();
    for index in 0..copies {
        component.section(&ModuleSection(module));
        let arguments: [(&str, ModuleArg); 0] = [];
        core_instances.instantiate(index, arguments);
    }
    let mut instances = ComponentInstanceSection::new();
    let items: [(&str, ComponentExportKind, u32); 0] = [];
    instances.export_items(items);
    let mut exports = ComponentExportSection::new();
    exports.export("wattle:plugin/node@0.1.0", ComponentExportKind::Instance, 0, None);
    component.section(&core_instances).section(&instances).section(&exports);
    component
}
