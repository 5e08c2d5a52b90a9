//! Calls of the host, and conversions between the types of the SDK and those of the generated
//! bindings. One module per interface.

pub(crate) mod blob;
pub(crate) mod clock;
mod convert;
pub(crate) mod emit;
pub(crate) mod export;
pub(crate) mod http;
pub(crate) mod interrupt;
pub(crate) mod llm;
pub(crate) mod log;
pub(crate) mod memory;
mod message;
mod panic;
pub(crate) mod random;
pub(crate) mod runs;
pub(crate) mod settings;
pub(crate) mod sql;
pub(crate) mod tenants;
pub(crate) mod tools;
