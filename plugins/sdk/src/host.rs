//! The implementation of the imports: the host in a guest, [`crate::testing`] in a native build.
//! Both provide the same functions, with the types of the SDK.

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use crate::testing::answer::{
    blob, clock, emit, http, interrupt, llm, log, memory, random, runs, settings, sql, tenants,
    tools,
};
#[cfg(target_arch = "wasm32")]
pub(crate) use crate::wire::{
    blob, clock, emit, http, interrupt, llm, log, memory, random, runs, settings, sql, tenants,
    tools,
};
