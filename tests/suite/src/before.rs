//! Data folders that hosts wrote before a change of what they store.
//!
//! A folder is never written again. The current host writes the current form, so a new folder would
//! not reveal a difference. Data that only later hosts store needs another folder.
//!
//! # Names of stored types
//!
//! The digests of the journal and the seals of threads cover stored JSON. A field that is renamed
//! in the code keeps its key in that JSON. The folder `tests/suite/data/before-names` verifies
//! this: a host wrote it before the first rename, and the test `host::older` opens it with the
//! current host.
//!
//! The program `wattle-before` wrote the folder:
//!
//! ```sh
//! cargo xtask guests
//! cargo run -p wattle-suite --bin wattle-before
//! ```
//!
//! * `manifest.json`: the expected contents.
//! * `data`: the data folder, with each file compressed separately. `versions` has the components
//!   of that time, to which the threads are pinned.
//! * `exported.jsonl`: one thread, as `wattle thread export` wrote it, compressed.
//!
//! # Applications
//!
//! The sessions of an application are threads, and rows that its endpoints derive from the logs of
//! the threads. `tests/suite/data/before-apps` has a folder for each application, from before the
//! applications moved code into the SDK. The test `host::older_apps` opens them with the current
//! components.
//!
//! The program `wattle-before-apps` wrote the folders:
//!
//! ```sh
//! cargo xtask guests
//! cargo run -p wattle-suite --bin wattle-before-apps
//! ```
//!
//! * `manifest.json`: requests and their responses, compressed. The program wrote the folder, then
//!   opened it as the test does, and recorded the responses. `stored` has requests that read, and
//!   `continued` has requests that continue sessions. `threads` is the number of threads,
//!   `clock_ms` the time at which the host stopped, and `services` the address of its stand-in.
//! * `data`: the data folder, with each file compressed separately, and without `versions`.

pub mod apps;
mod folder;
mod host;
mod record;

pub use self::folder::{Folder, NAMES, manifest, put_kept_app};
pub use self::host::{
    APP, ASSISTANT, CACHED, CRON_THREAD, GATED, HELD, HOOK, MORE, RUNS, VISITS, WEBHOOK_THREAD,
    errand, settled, setup, url,
};
pub use self::record::{ask, get, lacking, post, record};
