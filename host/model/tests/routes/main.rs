//! Model routes against real servers on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod alias;
mod callers;
mod changed;
mod endless;
mod failure;
mod gateway;
mod header;
mod image;
mod memory;
mod openai_dialects;
mod optional_fields;
mod overrides;
mod peers;
mod retry;
mod schema;
mod state;
mod stream;
mod structured;
mod support;
mod tenant;
mod wire;
