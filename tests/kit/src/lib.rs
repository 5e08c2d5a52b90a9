//! Stand-in servers, a manual clock, fault injection and test processes for Wattle's tests.
//!
//! The kit has no mocks inside the process under test: the servers listen on loopback and speak the
//! real protocols, so that tests cover adapters down to the socket.
//!
//! # Layout
//!
//! * [`standin`]: stand-ins for model providers and other services, with faults, gates and a
//!   request log
//! * [`replay`]: transcripts of unusual services as text files, and servers that replay them
//! * [`oddity`]: JSON values with one changed part, for property tests
//! * [`slow_component`]: components that keep a compiler busy for minutes
//! * [`large_code`]: small components whose compiled code is large
//! * `node_component`: the component around the modules of both
//! * [`picture`]: small valid PNG files that contain a text and are padded to any size
//! * [`configuration`]: the configurations of applications, with stand-ins for services
//! * [`damage`]: damage to files, as by a faulty disk
//! * [`clock`]: a clock that advances only on request
//! * [`rebound`]: a name whose addresses change between lookups, and the test of its clients
//! * [`link`]: a TCP proxy that a test delays and breaks
//! * [`log`]: captured log lines of the code under test
//! * [`layer`]: layers over a store that change some of its calls
//! * [`memory`]: a long-term memory with hooks before and after each call
//! * [`gates`]: failpoints, which pause or fail calls
//! * [`forgetful`]: a store whose logs can become unreadable
//! * [`process`]: child processes that end with the test
//! * [`turns`]: turns for long work, which a test holds
//! * [`postgres`]: a temporary PostgreSQL server
//! * [`needs`]: programs that must be installed for a test, and [`need!`]

pub mod clock;
pub mod configuration;
pub mod damage;
pub mod error;
pub mod forgetful;
pub mod gates;
pub mod large_code;
pub mod layer;
pub mod link;
pub mod log;
pub mod memory;
mod node_component;
pub mod oddity;
pub mod picture;
pub mod postgres;
pub mod process;
pub mod rebound;
pub mod replay;
pub mod slow_component;
pub mod standin;
pub mod turns;

pub use wattle_needs::{self as needs, need};
