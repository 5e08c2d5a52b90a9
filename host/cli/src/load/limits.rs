//! Limits on the total size and number of files of an app and of the plugins folder, and on
//! concurrent loads.
//!
//! The limits of single files are in [`file`](super::file).

/// Maximum size of all stream descriptions of an app, in bytes. The descriptions stay in memory as
/// long as the app is loaded. The descriptions of the bundled apps have a few KiB.
pub const STREAMS_BYTES: u64 = 4 << 20;

/// Maximum size of all migrations of an app, in bytes. The migrations of one database are in memory
/// together until they are applied.
pub const MIGRATIONS_BYTES: u64 = 64 << 20;

/// Maximum number of components of an app. Each of the bundled apps has one component.
pub const APP_COMPONENTS: usize = 32;

/// Maximum number of files and folders in the folder of an app, down to the depth that the host
/// watches. The host does not load an app with more entries. The limit is needed because each
/// refresh reads the size and modification time of each entry.
pub const APP_ENTRIES: usize = 10_000;

/// Maximum number of files and folders that a search of the plugins folder visits, including those
/// in the folders of apps. Cargo's target folder has a few thousand entries at this depth.
pub const SEARCHED_ENTRIES: usize = 50_000;

/// Maximum number of loads that read their files at once. Each load can have a component of 64 MiB
/// in memory.
pub const READ_PLACES: usize = 4;

/// Maximum number of loads that compile a component at once. Each load can have a component of 64
/// MiB in memory.
pub const COMPILE_PLACES: usize = 4;

/// Maximum number of concurrent compilations that may take more than a few seconds of CPU time. The
/// number is lower than [`COMPILE_PLACES`], so that slow components do not delay other components.
pub const SLOW_PLACES: usize = 2;

/// Maximum number of apps that apply their migrations at once. A migration can take as long as its
/// database allows.
pub const MIGRATION_PLACES: usize = 4;
