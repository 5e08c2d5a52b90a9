//! Small components whose compiled code is large.
//!
//! A compiler writes the initial content of a memory as one image, with the zeros between the bytes
//! that a module names. So a module of a hundred bytes has an image of 16 MiB.

use wasm_encoder::{
    Component, ComponentExportKind, ComponentExportSection, ComponentInstanceSection, ConstExpr,
    DataSection, InstanceSection, MemorySection, MemoryType, Module, ModuleArg, ModuleSection,
};

/// Size of a page of memory, in bytes.
const PAGE_BYTES: u32 = 64 << 10;

/// Pages of the memory of each module. An image of this size may have any number of zeros.
const PAGES: u32 = 256;

/// Returns the bytes of a component with this many modules, each of which adds 16 MiB to the
/// compiled code. The component exports a node of the contract without its functions.
pub fn component_with_large_code(modules: u32) -> Vec<u8> {
    let module = module();
    let mut component = Component::new();
    let mut core_instances = InstanceSection::new();
    for index in 0..modules {
        component.section(&ModuleSection(&module));
        let arguments: [(&str, ModuleArg); 0] = [];
        core_instances.instantiate(index, arguments);
    }
    let mut instances = ComponentInstanceSection::new();
    let items: [(&str, ComponentExportKind, u32); 0] = [];
    instances.export_items(items);
    let mut exports = ComponentExportSection::new();
    exports.export("wattle:plugin/node@0.1.0", ComponentExportKind::Instance, 0, None);
    component.section(&core_instances).section(&instances).section(&exports);
    component.finish()
}

/// Returns a module whose memory has a byte in its first page and one in its last page.
fn module() -> Module {
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: PAGES.into(),
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut data = DataSection::new();
    for page in [0, PAGES - 1] {
        let place = ConstExpr::i32_const((page * PAGE_BYTES).cast_signed());
        data.active(0, &place, [1]);
    }
    let mut module = Module::new();
    module.section(&memories).section(&data);
    module
}
