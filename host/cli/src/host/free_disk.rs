//! The floor of free space on the disk of the data folder.

use std::io;
use std::path::Path;
use std::sync::Arc;

use wattle_run::free_disk::{DiskSpace, DiskStatus, FreeDisk, ReadDiskSpace};

use crate::config::{ByteSize, Config, StoreKind};

/// Returns the free space of the disk with the configured floor. Tests can replace the reading of
/// the space.
pub(super) fn open(config: &Config, read: Option<ReadDiskSpace>) -> FreeDisk {
    let of_store = || -> Option<ReadDiskSpace> {
        let folder = folder_with_floor(config)?.to_owned();
        Some(Arc::new(move || disk_space(&folder)))
    };
    match read.or_else(of_store) {
        Some(read) => FreeDisk::new(read, floor_bytes(config)),
        None => FreeDisk::default(),
    }
}

/// Reads the free space of the disk, with its floor. Returns `None` if the disk has no floor.
pub(crate) fn read_status(config: &Config) -> Option<io::Result<DiskStatus>> {
    let space = disk_space(folder_with_floor(config)?);
    Some(space.map(|space| DiskStatus::new(space, floor_bytes(config))))
}

/// Returns the folder whose disk has a floor. A store in memory or in a database takes nothing of
/// the disk, so the disk has no floor then.
fn folder_with_floor(config: &Config) -> Option<&Path> {
    let has_floor = config.limits.free_disk != Some(ByteSize(0));
    (has_floor && config.store.kind == StoreKind::Redb).then_some(config.data.as_path())
}

fn floor_bytes(config: &Config) -> Option<u64> {
    config.limits.free_disk.map(|size| size.0)
}

/// Returns the space of the file system of a folder.
///
/// # Errors
///
/// Errors of the file system, and [`io::ErrorKind::Unsupported`] on systems other than Unix.
#[cfg(unix)]
fn disk_space(folder: &Path) -> io::Result<DiskSpace> {
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
fn disk_space(_: &Path) -> io::Result<DiskSpace> {
    Err(io::ErrorKind::Unsupported.into())
}
