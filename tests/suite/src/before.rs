//! A data folder that a host wrote before types and fields were renamed.
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
//! The folder is never written again. The current host writes the current keys, so a new folder
//! would not reveal a key that changed by mistake. Data that only later hosts store needs another
//! folder.
//!
//! # The folder
//!
//! * `manifest.json`: the expected contents.
//! * `data`: the data folder, with each file compressed separately. `versions` has the components
//!   of that time, to which the threads are pinned.
//! * `exported.jsonl`: one thread, as `wattle thread export` wrote it, compressed.

mod folder;
mod host;
mod record;

pub use self::folder::{Folder, NAMES, manifest, put_kept_app};
pub use self::host::{
    APP, ASSISTANT, CACHED, CRON_THREAD, GATED, HELD, HOOK, MORE, RUNS, VISITS, WEBHOOK_THREAD,
    errand, settled, setup, url,
};
pub use self::record::{ask, get, lacking, post, record};
