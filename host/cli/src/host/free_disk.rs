//! The floor of free space on the disk of the data folder.

use std::io;
use std::path::Path;
use std::sync::Arc;

use wattle_run::free_disk::{DiskSpace, FreeDisk, ReadDiskSpace};

use crate::config::{Config, StoreKind};

/// Returns the free space of the disk with the configured floor. A store in memory or in a database
/// takes nothing of the disk, so the disk has no floor then, unless a test reads the space.
pub(super) fn open(config: &Config, read: Option<ReadDiskSpace>) -> FreeDisk {
    let floor_bytes = config.limits.free_disk.map(|size| size.0);
    if floor_bytes == Some(0) {
        return FreeDisk::default();
    }
    let read: ReadDiskSpace = match read {
        Some(read) => read,
        None if config.store.kind == StoreKind::Redb => {
            let folder = config.data.clone();
            Arc::new(move || disk_space(&folder))
        }
        None => return FreeDisk::default(),
    };
    FreeDisk::new(read, floor_bytes)
}

/// Returns the space of the file system of a folder.
///
/// # Errors
///
/// Errors of the file system, and [`io::ErrorKind::Unsupported`] on systems other than Unix.
#[cfg(unix)]
pub(crate) fn disk_space(folder: &Path) -> io::Result<DiskSpace> {
    let space = rustix::fs::statvfs(folder)?;
    Ok(DiskSpace {
        total_bytes: space.f_blocks.saturating_mul(space.f_frsize),
        free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
    })
}

/// Returns the space of the file system of a folder.
///
/// # Errors
///
/// [`io::ErrorKind::Unsupported`].
#[cfg(not(unix))]
pub(crate) fn disk_space(_: &Path) -> io::Result<DiskSpace> {
    Err(io::ErrorKind::Unsupported.into())
}
