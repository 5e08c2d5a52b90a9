//! The `wattle` binary: configuration, host and commands.
//!
//! Tests use this crate as a library to start complete servers in their own process, see
//! [`server::Server`].
//!
//! # Layout
//!
//! * [`args`]: the arguments; [`command`]: one command per file; [`exit`]: exit codes.
//! * `build`: builds the components of an app.
//! * `cases`: cases of apps, which commands run and compare with their expected results.
//! * [`config`]: the configuration, `wattle.toml`.
//! * `data_folder`: the host's own files in the data folder, which apps must not overwrite.
//! * [`mod@env`]: environment variables.
//! * `files_folder`: the folder of a file projection, below which no link is followed.
//! * `paths`: symbolic links of paths, and the directory entries through which they lead.
//! * [`host`]: opens the adapters and creates the engine from the configuration; the only module
//!   that uses all adapters.
//! * [`load`]: loads apps and plugins from disk, and reloads them when they change.
//! * [`server`]: a running server; [`client`]: access to the API, through a server or without one.
//! * [`file_projection`]: writes the file projections of apps.
//! * `studio`: the files of the studio, the user interface of the host.
//! * [`scaffold`]: new apps, and the SDKs with which their components are built.
//! * [`output`]: the only module that prints; [`logging`]: logs.
//! * [`error`]: errors of commands.

pub mod args;
mod build;
mod cases;
pub mod client;
pub mod command;
pub mod config;
mod data_folder;
pub mod env;
pub mod error;
pub mod exit;
pub mod file_projection;
mod files_folder;
pub mod host;
pub mod load;
pub mod logging;
pub mod output;
mod paths;
pub mod scaffold;
pub mod server;
mod studio;
