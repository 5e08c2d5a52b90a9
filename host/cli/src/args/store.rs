//! Arguments of `store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Verbs for the store.
#[derive(Clone, Debug, Subcommand)]
pub enum StoreCommand {
    /// Give the space of deleted things back to the file system
    Compact,
    /// Read everything that is stored and name what is damaged
    Verify,
    /// Rebuild a damaged store from what can be read of it
    Repair,
    /// Copy threads, blobs and memory into a new folder; a server goes on meanwhile
    Backup(StoreBackupArgs),
    /// Put a backup into a data folder that holds no store
    Restore(StoreRestoreArgs),
}

/// Arguments of `store backup`.
#[derive(Clone, Debug, Args)]
pub struct StoreBackupArgs {
    /// The folder to make; it must be empty or not exist
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Arguments of `store restore`.
#[derive(Clone, Debug, Args)]
pub struct StoreRestoreArgs {
    /// A folder that `store backup` made
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
