//! Listings of folders.
//!
//! The implementation of wasmtime-wasi reads all entries of a folder when a guest begins a listing,
//! and keeps these entries until the guest drops the listing. No limit counts that memory, and a
//! guest may hold a hundred listings. The listings of this module read a few entries at a time.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use cap_primitives::fs::{DirEntry, FileType, ReadDir, read_base_dir};
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType};
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry, ErrorCode};
use wasmtime_wasi::runtime::spawn_blocking;

use crate::host_state::HostState;
use crate::wasi::replace;

/// The interface with listings, in the version that wasmtime-wasi defines.
const TYPES: &str = "wasi:filesystem/types@0.2.12";

/// Maximum number of entries that a listing reads ahead. A name has at most 255 bytes on common
/// file systems, and a guest holds at most a hundred listings. All listings of a guest together
/// therefore take at most about 2 MiB.
const READ_AHEAD_ENTRIES: usize = 64;

/// A listing of a folder.
struct Listing {
    /// Entries that the host has read and the guest has not.
    read: VecDeque<Result<DirectoryEntry, ErrorCode>>,
    /// The entries that the host has not read; `None` at the end of the folder.
    rest: Option<ReadDir>,
}

impl Listing {
    /// Reads the next entries.
    fn read(mut rest: ReadDir) -> Self {
        let read: VecDeque<_> = rest.by_ref().take(READ_AHEAD_ENTRIES).map(entry_of).collect();
        let is_end = read.len() < READ_AHEAD_ENTRIES;
        Self { read, rest: (!is_end).then_some(rest) }
    }
}

/// Replaces the listings of wasmtime-wasi.
pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    type Guest<'a> = StoreContextMut<'a, HostState>;
    replace(linker, TYPES, "directory-entry-stream", |types, item| {
        types.resource(item, ResourceType::host::<Listing>(), |mut guest: Guest<'_>, listing| {
            guest.data_mut().table.delete(Resource::<Listing>::new_own(listing))?;
            Ok(())
        })
    })?;
    replace(linker, TYPES, "[method]descriptor.read-directory", |types, item| {
        types.func_wrap_async(item, |mut guest: Guest<'_>, (folder,): (Resource<Descriptor>,)| {
            Box::new(async move { begin(guest.data_mut(), folder).await.map(|begun| (begun,)) })
        })
    })?;
    replace(linker, TYPES, "[method]directory-entry-stream.read-directory-entry", |types, item| {
        types.func_wrap_async(item, |mut guest: Guest<'_>, (listing,): (Resource<Listing>,)| {
            Box::new(async move { next(guest.data_mut(), listing).await.map(|entry| (entry,)) })
        })
    })
}

/// Begins a listing of a folder.
async fn begin(
    guest: &mut HostState,
    folder: Resource<Descriptor>,
) -> wasmtime::Result<Result<Resource<Listing>, ErrorCode>> {
    let Descriptor::Dir(folder) = guest.table.get(&folder)? else {
        return Ok(Err(ErrorCode::NotDirectory));
    };
    let folder = Arc::clone(&folder.dir);
    match guest.off_cpu(spawn_blocking(move || read_base_dir(&folder))).await {
        Ok(rest) => {
            let listing = Listing { read: VecDeque::new(), rest: Some(rest) };
            Ok(Ok(guest.table.push(listing)?))
        }
        Err(error) => Ok(Err(error.into())),
    }
}

/// Returns the next entry of a listing, or `None` at its end.
async fn next(
    guest: &mut HostState,
    listing: Resource<Listing>,
) -> wasmtime::Result<Result<Option<DirectoryEntry>, ErrorCode>> {
    let known = guest.table.get_mut(&listing)?;
    if known.read.is_empty()
        && let Some(rest) = known.rest.take()
    {
        let read = guest.off_cpu(spawn_blocking(move || Listing::read(rest))).await;
        *guest.table.get_mut(&listing)? = read;
    }
    Ok(guest.table.get_mut(&listing)?.read.pop_front().transpose())
}

fn entry_of(entry: io::Result<DirEntry>) -> Result<DirectoryEntry, ErrorCode> {
    let entry = entry?;
    let name = entry.file_name().into_string().map_err(|_| ErrorCode::IllegalByteSequence)?;
    Ok(DirectoryEntry { type_: type_of(&entry)?, name })
}

fn type_of(entry: &DirEntry) -> io::Result<DescriptorType> {
    let mut kind = entry.file_type()?;
    if kind == FileType::unknown() {
        // This file system does not store the kind of an entry in the folder.
        kind = entry.metadata()?.file_type();
    }
    Ok(descriptor_type(kind))
}

/// Returns the descriptor type of WASI for a file type of the operating system.
fn descriptor_type(kind: FileType) -> DescriptorType {
    if kind.is_dir() {
        DescriptorType::Directory
    } else if kind.is_symlink() {
        DescriptorType::SymbolicLink
    } else if kind.is_file() {
        DescriptorType::RegularFile
    } else {
        device_type(kind)
    }
}

#[cfg(unix)]
fn device_type(kind: FileType) -> DescriptorType {
    use cap_primitives::fs::FileTypeExt as _;
    if kind.is_block_device() {
        DescriptorType::BlockDevice
    } else if kind.is_char_device() {
        DescriptorType::CharacterDevice
    } else {
        DescriptorType::Unknown
    }
}

/// Only Unix has device files in folders.
#[cfg(not(unix))]
fn device_type(_: FileType) -> DescriptorType {
    DescriptorType::Unknown
}

#[cfg(test)]
mod tests {
    use cap_primitives::ambient_authority;
    #[cfg(unix)]
    use cap_primitives::fs::Metadata;
    use cap_primitives::fs::open_ambient_dir;

    use super::*;

    #[test]
    fn a_listing_holds_few_entries_of_a_large_folder() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..=READ_AHEAD_ENTRIES {
            std::fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        let opened = open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let first = Listing::read(read_base_dir(&opened).unwrap());
        assert_eq!(first.read.len(), READ_AHEAD_ENTRIES);
        let second = Listing::read(first.rest.unwrap());
        assert_eq!((second.read.len(), second.rest.is_none()), (1, true));
    }

    #[cfg(unix)]
    #[test]
    fn character_device_has_its_descriptor_type() {
        let null = std::fs::File::open("/dev/null").unwrap();
        let kind = Metadata::from_file(&null).unwrap().file_type();
        assert!(matches!(descriptor_type(kind), DescriptorType::CharacterDevice));
    }
}
