//! Arguments of `store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The commands of `wattle store`.
#[derive(Clone, Debug, Subcommand)]
pub enum StoreCommand {
    /// Return the space of deleted data to the file system
    Compact,
    /// Read all stored data and list what is damaged
    Verify,
    /// Rebuild a damaged store from the data that can be read
    Repair,
    /// Copy threads, blobs and long-term memory to a new folder; a server can keep running
    Backup(StoreBackupArgs),
    /// Restore a backup to a data folder without a store
    Restore(StoreRestoreArgs),
}

/// Arguments of `store backup`.
#[derive(Clone, Debug, Args)]
pub struct StoreBackupArgs {
    /// Folder to create; it must be empty or not exist
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Arguments of `store restore`.
#[derive(Clone, Debug, Args)]
pub struct StoreRestoreArgs {
    /// Folder that `store backup` created
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
