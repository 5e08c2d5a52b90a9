//! The engine of Wattle: it performs what the pure core (`wattle-graph`) decides.
//!
//! # Layout
//!
//! * [`ports`]: what the engine needs of the world, as traits that adapters implement.
//! * [`hostcall`]: every host call a guest can make, as data: request, answer,
//!   how safe it is to repeat; [`travel`]: requests and views of history, edits and forks.
//! * [`gate`]: the one place that every host call passes: grant, journal, budget, effect, event.
//! * [`grant`]: what the operator allows a plugin; [`limit`]: every limit, in one place.
//! * [`caps`]: what a thread, an app and a tenant may take of the store.
//! * [`app`] and [`catalog`]: loaded apps with their graphs and plugins.
//! * [`credentials`]: secrets, kept out of what a service says.
//! * [`engine`]: the handle that starts, resumes, cancels and reads runs.
//! * [`export`]: one thread as one file.
//! * [`facts`]: how large the facts may be that clients give.
//! * [`json`]: JSON from outside, also with halves of characters.
//! * `driver`: the superstep loop of one run; `task`: attempts of one node.
//! * [`log`]: the writer of one thread's event log; `view`: threads as clients see them.
//! * [`offline`]: a thread executed once more from its journal.
//! * [`quota`]: what is taken of the caps.
//! * `replay`: supersteps that were taken and not stored, after a crash.
//! * `salvage`: answers that cancelled runs paid for and that the next run may still use.
//! * [`tail`]: the reader of a log that grows.
//! * [`unkept`]: checkpoints that were made and not stored, made again.

pub mod app;
pub mod bulk;
pub mod cancel;
pub mod caps;
pub mod catalog;
pub mod credentials;
mod driver;
pub mod engine;
pub mod export;
pub mod facts;
pub mod gate;
pub mod grant;
pub mod hostcall;
pub mod json;
pub mod limit;
pub mod log;
pub mod offline;
pub mod page;
pub mod ports;
pub mod quota;
mod replay;
mod salvage;
pub mod tail;
mod task;
pub mod travel;
pub mod unkept;
mod view;
