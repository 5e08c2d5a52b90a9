//! An engine that dies at a write of one's choice, as by a power cut, for the program
//! `wattle-crash`.
//!
//! * [`store`]: a store whose process ends at one of its writes
//! * [`journey`]: the graph that it runs, and its nodes
//! * [`services`]: a model and HTTP over the real sockets of a stand-in
//! * [`life`]: one life of the process: what was cut is recovered, what is open is answered

pub mod journey;
pub mod life;
pub mod services;
pub mod store;
