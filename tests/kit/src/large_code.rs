//! Small components whose compiled code is large.
//!
//! A compiler writes the initial content of a memory as one image, with the zeros between the bytes
//! that a module names. So a module of a hundred bytes has an image of 16 MiB.

use wasm_encoder::{ConstExpr, DataSection, MemorySection, MemoryType, Module};

use crate::node_component::node_component;

/// Size of a page of memory, in bytes.
const PAGE_BYTES: u32 = 64 << 10;

/// Pages of the memory of each module. An image of this size may have any number of zeros.
const PAGES: u32 = 256;

/// Returns the bytes of a component with this many modules, each of which adds 16 MiB to the
/// compiled code. The component exports a node of the contract without its functions.
pub fn component_with_large_code(modules: u32) -> Vec<u8> {
    node_component(&module(), modules).finish()
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
