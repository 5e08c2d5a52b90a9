//! The engine of Wattle: it performs what the pure core (`wattle-graph`) decides.
//!
//! # Layout
//!
//! * [`ports`]: what the engine needs of the world, as traits that adapters implement.
//! * [`call`]: every host call a guest can make: request, answer, how safe it is to repeat.
//! * [`gate`]: the one place that every host call passes: grant, journal, budget, effect, event.
//! * [`grant`]: what the operator allows a plugin; [`limit`]: every limit, in one place.
//! * [`app`] and [`catalog`]: loaded apps with their graphs and plugins.
//! * [`engine`]: the handle that starts, resumes, cancels and reads runs.
//! * [`export`]: one thread as one file.
//! * [`facts`]: how large the facts may be that clients give.
//! * `tools`: tools of plugins and servers under one roof.
//! * `driver`: the superstep loop of one run; `task`: attempts of one node.
//! * [`log`]: the writer of one thread's event log; `view`: threads as clients see them.
//! * [`offline`]: a thread executed once more from its journal.
//! * `replay`: supersteps that were taken and not stored, after a crash.
//! * `salvage`: answers that cancelled runs paid for and that the next run may still use.
//! * [`unkept`]: checkpoints that were made and not stored, made again.
//! * `web`: what the engine is to the web handler of one app.

pub mod app;
pub mod call;
pub mod cancel;
pub mod catalog;
mod driver;
pub mod engine;
pub mod export;
pub mod facts;
pub mod gate;
pub mod grant;
mod json;
pub mod limit;
pub mod log;
pub mod offline;
pub mod page;
pub mod ports;
mod replay;
mod salvage;
mod task;
mod tools;
pub mod unkept;
mod view;
mod web;
