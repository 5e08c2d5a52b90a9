//! The engine through its handle, with plugins in plain Rust and a memory store.

mod control;
mod durability;
mod foreign;
mod interrupts;
mod salvage;
mod supersteps;
mod tools;
mod transactions;
