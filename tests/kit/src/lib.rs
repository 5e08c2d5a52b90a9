//! Stand-in servers, manual clock, scripted ports and conformance suites for Wattle's tests.
//!
//! Nothing here is a mock inside the process under test: the servers listen on loopback and
//! speak the real protocols, so that adapters are tested down to the socket.
//!
//! # Layout
//!
//! * [`standin`]: model providers and market data over HTTP, with faults, gates and a journal
//! * [`replay`]: transcripts of odd services, as text files, and servers that replay them
//! * [`oddity`]: documents that are changed at one place, for properties
//! * [`picture`]: small valid PNG files that carry a text and any wanted size
//! * [`configuration`]: the configurations that applications ship, on stand-ins
//! * [`damage`]: files that are damaged as a disk damages them
//! * [`clock`]: a clock that moves only when told
//! * [`link`]: a link to a server that a test holds up and breaks
//! * [`log`]: what the code under test logs
//! * [`layer`]: a store over another store that does a few things differently
//! * [`memory`]: a long-term memory over another one, with a hook before and after each call
//! * [`gates`]: calls that a test holds up or lets fail
//! * [`forgetful`]: a store whose logs can become unreadable
//! * [`process`]: child programs that die with the test
//! * [`postgres`]: a throw-away PostgreSQL server
//! * [`needs`]: programs of the machine that a test may lack, and [`need!`]

pub mod clock;
pub mod configuration;
pub mod damage;
pub mod error;
pub mod forgetful;
pub mod gates;
pub mod layer;
pub mod link;
pub mod log;
pub mod memory;
pub mod oddity;
pub mod picture;
pub mod postgres;
pub mod process;
pub mod replay;
pub mod standin;

pub use wattle_needs::{self as needs, need};
