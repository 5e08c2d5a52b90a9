//! The engine through its handle, with plugins in plain Rust and a memory store.

mod answers;
mod breakpoints;
mod control;
mod doubt;
mod durability;
mod foreign;
mod interrupts;
mod leases;
mod memory;
mod migrate;
mod options;
mod policies;
mod replay;
mod retention;
mod salvage;
mod semantics;
mod subgraphs;
mod supersteps;
mod teach;
mod tools;
mod transactions;
mod travel_in_time;
mod unstored;
