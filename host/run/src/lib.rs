//! The engine of Wattle: it performs what the pure core (`wattle-graph`) decides.
//!
//! # Layout
//!
//! * [`ports`]: what the engine needs of the outside world, as traits that adapters implement.
//! * [`hostcall`]: every host call of a guest as data: request, result, idempotency.
//!   [`time_travel`]: requests and views of history, edits and forks.
//! * [`gate`]: the one path of every host call: grant, journal, budget, effect, event.
//! * [`grant`]: what the operator allows a plugin. [`limit`]: the limits of guests and the engine.
//! * [`caps`]: bounds of what a thread, an app and a tenant store. [`quota`]: the usage of the
//!   caps. [`free_disk`]: the free space of the disk that no one may use up.
//! * [`app`] and [`catalog`]: loaded apps with their graphs and plugins. [`page`]: the page of an
//!   app.
//! * [`meter`]: how work on data of others is counted and divided. [`fair_share`]: shares of a
//!   limited resource between callers. [`caller_id`]: the identity of a caller.
//! * [`memory_budget`]: the default limits of all pools of memory. [`memory_pool`]: a limited amount
//!   of memory for values of one kind. [`shared_pool`]: a limited resource of which each owner has a
//!   share, with queues. `run_memory`: the memory of runs, divided between callers.
//!   [`service_memory`]: the memory of what services send.
//! * [`places`]: places for calls of an adapter, such as a model provider, shared between callers.
//! * [`lookups`]: bounds the lookups of names that others choose, and shares them between callers.
//!   [`reads`]: does the same for the reads of large states.
//! * [`credentials`]: redacts secrets in what services send back.
//! * [`engine`]: the handle that starts, resumes, cancels and reads runs.
//! * [`export`]: one thread as one file.
//! * [`metadata`]: the size limit of metadata, how filters match it, and the marker of stateless runs.
//! * [`json`]: JSON from outside of the host, with a bounded and lenient parser.
//! * `driver`: the superstep loop of one run. `task`: the attempts of one node. [`stop_flag`]: a
//!   flag that asks for a stop, such as a cancel, a drain or a shutdown. [`blocking`]: moves long
//!   work off the runtime's shared threads, in turns. [`schemas`]: a cache of compiled schemas.
//! * [`log`]: the writer of one thread's event log. `view`: threads as clients see them.
//! * [`replay`]: the replay of a thread from its journals, and the cost of the steps of a recorded
//!   run.
//! * `unpersisted_events`: after a crash, rebuilds supersteps whose checkpoints were not persisted.
//! * [`state_cache`]: the states of threads in memory, for reads of checkpoints.
//! * `result_reuse`: unused results of cancelled runs, which the next run may reuse.
//! * [`run_walk`]: reads all runs of a thread, page by page.
//! * [`tail`]: the reader of a log that grows.
//! * [`text`]: untrusted text, escaped for people.
//! * [`thread_walk`]: reads all threads, page by page.
//! * [`unpersisted`]: rebuilds unpersisted checkpoints from the event log.

#[cfg(test)]
mod allocation;
pub mod app;
pub mod blocking;
pub mod caller_id;
pub mod caps;
pub mod catalog;
pub mod credentials;
mod driver;
pub mod engine;
pub mod export;
pub mod fair_share;
pub mod free_disk;
pub mod gate;
pub mod grant;
pub mod hostcall;
pub mod json;
pub mod limit;
pub mod log;
pub mod lookups;
pub mod memory_budget;
pub mod memory_pool;
pub mod metadata;
pub mod meter;
pub mod page;
pub mod places;
pub mod ports;
pub mod quota;
pub mod reads;
pub mod replay;
mod result_reuse;
mod run_memory;
pub mod run_walk;
pub mod schemas;
pub mod service_memory;
pub mod shared_pool;
pub mod state_cache;
pub mod stop_flag;
pub mod tail;
mod task;
pub mod text;
pub mod thread_walk;
pub mod time_travel;
pub mod unpersisted;
mod unpersisted_events;
mod view;
