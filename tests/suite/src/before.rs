//! A data folder from before types and fields of the host got other names.
//!
//! The digests of the journal and the seals of threads cover stored JSON. A field that is renamed
//! in the code keeps its key there. The folder `tests/suite/data/before-names` shows whether it
//! does: a host wrote it before the first name changed, and the test `host::older` has today's host
//! open it.
//!
//! The program `wattle-before` wrote the folder:
//!
//! ```sh
//! cargo xtask guests
//! cargo run -p wattle-suite --bin wattle-before
//! ```
//!
//! It is never written again. A host of today writes the keys of today, so a new folder would agree
//! with a key that changed by mistake. What a later host stores in addition needs a folder of its
//! own.
//!
//! # The folder
//!
//! * `manifest.json`: what the test must find.
//! * `data`: the data folder, each file compressed by itself. The components in `versions` are the
//!   guests of that day, on which the threads go on.
//! * `exported.jsonl`: one thread as `wattle thread export` wrote it, compressed.

mod folder;
mod host;
mod record;

pub use self::folder::{file, folder, manifest, pack, put_kept_app, unpack};
pub use self::host::{
    APP, ASSISTANT, CACHED, CRON_THREAD, GATED, HELD, HOOK, MORE, RUNS, VISITS, WEBHOOK_THREAD,
    errand, settled, setup, url,
};
pub use self::record::{ask, lacking, record};
