//! Limits on the total size and number of files of an app and of the plugins folder, and on
//! concurrent loads.
//!
//! The limits of single files are in [`file`](super::file).

/// Maximum size of all stream descriptions of an app, in bytes. They stay in memory as long as the
/// app is loaded. Those of the bundled apps have a few KiB.
pub const STREAMS_BYTES: u64 = 4 << 20;

/// Maximum size of all migrations of an app, in bytes. The migrations of one database are in memory
/// together until they are applied.
pub const MIGRATIONS_BYTES: u64 = 64 << 20;

/// Maximum number of components of an app. Each of the bundled apps has one.
pub const APP_COMPONENTS: usize = 32;

/// Maximum number of files and folders in the folder of an app, down to the depth that the host
/// watches. The host does not load an app with more. Each refresh reads their sizes and
/// modification times.
pub const APP_ENTRIES: usize = 10_000;

/// Maximum number of files and folders that a search of the plugins folder visits, including those
/// in the folders of apps. Cargo's target folder has a few thousand at this depth.
pub const SEARCHED_ENTRIES: usize = 50_000;

/// Number of loads that read their files at once. Each can have a component of 64 MiB in memory.
pub const READ_PLACES: usize = 4;

/// Number of loads that compile a component at once. Each can have a component of 64 MiB in memory.
pub const COMPILE_PLACES: usize = 4;

/// Number of compilations at once that may take more than a few seconds of CPU time. It is lower
/// than [`COMPILE_PLACES`], so that slow components do not delay the others.
pub const SLOW_PLACES: usize = 2;

/// Number of apps that apply their migrations at once. A migration can take as long as its database
/// allows.
pub const MIGRATION_PLACES: usize = 4;
