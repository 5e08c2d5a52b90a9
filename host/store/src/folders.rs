//! Names of folders beside the file of a store.

/// Folder of blobs, in the folder of a store and in a backup.
pub const BLOBS_FOLDER: &str = "blobs";

/// Folder in which a store creates its backups.
pub const BACKUPS_FOLDER: &str = "backups";
