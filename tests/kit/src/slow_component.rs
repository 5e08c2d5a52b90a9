//! Components that keep a compiler busy for minutes.
//!
//! The component passes all checks before its compilation. Each of its functions has jump tables
//! that lead to all blocks around them, with other values of all local variables each, so that a
//! compiler needs a copy of each variable for each jump.

use wasm_encoder::{
    BlockType, CodeSection, CustomSection, Function, FunctionSection, InstructionSink, Module,
    TypeSection, ValType,
};

use crate::node_component::node_component;

/// Number of functions. Each takes an optimizing compiler some fifty milliseconds or more.
const FUNCTIONS: u32 = 400;

/// Number of jump tables of a function, of the blocks around them, and of local variables.
const TABLES: u32 = 32;
const BLOCKS: u32 = 32;
const VARIABLES: u32 = 32;

/// Returns the bytes of a component that exports a node of the contract without its functions.
/// Components with different numbers have different bytes.
pub fn slow_component(number: u32) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32], []);
    let (mut functions, mut code) = (FunctionSection::new(), CodeSection::new());
    let function = function();
    for _ in 0..FUNCTIONS {
        functions.function(0);
        code.function(&function);
    }
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&code);
    let number = number.to_le_bytes();
    let mut component = node_component(&module, 1);
    component.section(&CustomSection { name: "number".into(), data: number.as_slice().into() });
    component.finish()
}

fn function() -> Function {
    let mut function = Function::new([(VARIABLES, ValType::I32)]);
    let mut code = function.instructions();
    for _ in 0..BLOCKS {
        code.block(BlockType::Empty);
    }
    // Label 0 is the block around the table.
    let labels: Vec<u32> = (1..=BLOCKS).collect();
    for _ in 0..TABLES {
        code.block(BlockType::Empty).local_get(0).br_table(labels.iter().copied(), 0).end();
        change_variables(&mut code);
    }
    for _ in 0..BLOCKS {
        code.end();
        change_variables(&mut code);
    }
    code.end();
    function
}

fn change_variables(code: &mut InstructionSink<'_>) {
    for variable in 1..=VARIABLES {
        code.local_get(variable).i32_const(3).i32_add().local_set(variable);
    }
}
