//! A read-only view of a redb file in any state.
//!
//! When redb opens a file, it repairs the file after a crash and marks the file as open. So redb
//! would write to a damaged file before the damage is known. A view keeps in memory everything that
//! redb writes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex};

use redb::{
    BackendError, Builder, ConcurrencyMode, DatabaseError, ReadOnlyDatabase, ReadTransaction,
    ReadableDatabase as _, StorageBackend, StorageError, TransactionError,
};
use wattle_run::ports::store::StoreError;

use crate::error::{self, corrupt, redb_error};
use crate::file::{SHORT_USE_CACHE_BYTES, guarded};
use crate::lock::lock;

/// Size of a block of the overlay: a page of redb.
const BLOCK_BYTES: usize = 4096;

/// Offset of the flags in the header of a redb file, as the format description of redb says.
const FLAGS_OFFSET: usize = 9;

/// Flag of a file that was not closed.
const IS_OPEN: u8 = 2;

const OP_READ: &str = "read its file";

/// The result of comparing all pages in use with their checksums.
#[derive(Debug)]
pub(crate) enum Integrity {
    /// All checksums match.
    Intact,
    /// Some checksums do not match, with the reason.
    Damaged(String),
    /// The checksums were not compared.
    Unchecked,
}

/// Compares all pages of a file with their checksums. The file must not be open for writing.
///
/// # Errors
///
/// Errors of reading the file.
pub(crate) fn check_integrity(path: &Path) -> Result<Integrity, StoreError> {
    let backend = OverlayBackend::open(path, false).map_err(|error| failed(path, &error))?;
    let checked = guarded(OP_READ, || {
        let mut builder = Builder::new();
        builder.set_cache_size(SHORT_USE_CACHE_BYTES).set_check_integrity_on_open(true);
        match builder.create_with_backend(backend) {
            Ok(_) => Ok(Integrity::Intact),
            Err(error) if is_damage(&error) => Ok(Integrity::Damaged(error.to_string())),
            // Opening the file reports any other error.
            Err(_) => Ok(Integrity::Unchecked),
        }
    });
    match checked {
        Err(StoreError::Corrupt { message, .. }) => Ok(Integrity::Damaged(message)),
        checked => checked,
    }
}

/// Returns whether an error means that a file has other bytes than redb wrote.
pub(crate) fn is_damage(error: &DatabaseError) -> bool {
    match error {
        DatabaseError::Storage(StorageError::Corrupted(_)) => true,
        DatabaseError::Storage(StorageError::Io(error)) => error::is_damage(error.kind()),
        _ => false,
    }
}

/// A read-only view of a file as of its opening.
pub(crate) struct ReadOnlyView {
    database: ReadOnlyDatabase,
    is_closed: Arc<Mutex<bool>>,
}

impl ReadOnlyView {
    /// Begins a read transaction.
    pub(crate) fn begin_read(&self) -> Result<ReadTransaction, TransactionError> {
        self.database.begin_read()
    }

    /// Aborts all reads of this view, since the file is about to be written. Each read fails when
    /// it next accesses the file.
    pub(crate) fn close(&self) {
        *lock(&self.is_closed) = true;
    }
}

/// Opens a read-only view of a file, even if the file was not closed. If the file has damaged pages
/// or unreadable blocks, the view contains the rest. Later writes are not visible.
///
/// # Errors
///
/// [`StoreError::Corrupt`] if the header of the file cannot be read.
pub(crate) fn open_view(path: &Path) -> Result<ReadOnlyView, StoreError> {
    let backend = OverlayBackend::open(path, true).map_err(|error| failed(path, &error))?;
    open_view_on(path, backend)
}

fn open_view_on<F>(path: &Path, backend: OverlayBackend<F>) -> Result<ReadOnlyView, StoreError>
where
    F: Read + Seek + Send + 'static,
{
    let is_closed = backend.is_closed.clone();
    let opened = guarded(OP_READ, || {
        let mut builder = Builder::new();
        // In this mode, redb does not need the list of free pages, and opens a file that was not
        // closed.
        builder
            .set_cache_size(SHORT_USE_CACHE_BYTES)
            .set_concurrency_mode(ConcurrencyMode::SingleWriter);
        builder.open_read_only_with_backend(backend).map_err(|error| {
            if is_damage(&error) {
                corrupt(format!("checkpoint store `{}`", path.display()), error)
            } else {
                redb_error(OP_READ)(error)
            }
        })
    });
    Ok(ReadOnlyView { database: opened?, is_closed })
}

fn failed(path: &Path, error: &io::Error) -> StoreError {
    error::backend(OP_READ, format!("`{}`: {error}", path.display()))
}

/// A file with an overlay of writes in memory.
struct OverlayBackend<F> {
    overlay: Mutex<Overlay<F>>,
    /// Whether reads fail from now on. The lock is held during each read.
    is_closed: Arc<Mutex<bool>>,
}

struct Overlay<F> {
    file: F,
    /// Length of the file in bytes.
    file_bytes: u64,
    bytes: u64,
    /// Whether bytes beyond the end, and bytes that cannot be read, are read as zeros. With an
    /// error in place of the zeros, redb would refuse all further reads, although the rest of the
    /// file may be intact.
    is_padded: bool,
    /// Written blocks, by block number.
    written: BTreeMap<u64, Box<[u8; BLOCK_BYTES]>>,
    /// Numbers of blocks that cannot be read.
    unreadable: BTreeSet<u64>,
}

impl<F> fmt::Debug for OverlayBackend<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverlayBackend").finish_non_exhaustive()
    }
}

impl OverlayBackend<File> {
    fn open(path: &Path, as_closed: bool) -> io::Result<Self> {
        let file = File::open(path)?;
        let file_bytes = file.metadata()?.len();
        Self::new(file, file_bytes, as_closed)
    }
}

impl<F: Read + Seek> OverlayBackend<F> {
    /// Creates a view of a file. With `as_closed`, the file appears to have been closed, and bytes
    /// beyond its end are read as zeros.
    fn new(file: F, file_bytes: u64, as_closed: bool) -> io::Result<Self> {
        let mut overlay = Overlay {
            file,
            file_bytes,
            bytes: file_bytes,
            is_padded: as_closed,
            written: BTreeMap::new(),
            unreadable: BTreeSet::new(),
        };
        if as_closed && file_bytes > FLAGS_OFFSET as u64 {
            let mut first = overlay.block(0)?;
            first[FLAGS_OFFSET] &= !IS_OPEN;
            overlay.written.insert(0, first);
        }
        Ok(Self { overlay: Mutex::new(overlay), is_closed: Arc::default() })
    }
}

impl<F: Read + Seek> Overlay<F> {
    /// Returns the current content of a block; zeros beyond the end of the file.
    fn block(&mut self, number: u64) -> io::Result<Box<[u8; BLOCK_BYTES]>> {
        if let Some(block) = self.written.get(&number) {
            return Ok(block.clone());
        }
        let mut block = Box::new([0; BLOCK_BYTES]);
        self.read_file_padded(number * BLOCK_BYTES as u64, &mut block[..])?;
        Ok(block)
    }

    /// Reads bytes of the file, without the overlay.
    fn read_file_padded(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match self.read_file(offset, out) {
            Err(_) if self.is_padded => {
                self.read_by_blocks(offset, out);
                Ok(())
            }
            read => read,
        }
    }

    /// Reads bytes of the file block by block, with zeros in place of blocks that cannot be read.
    fn read_by_blocks(&mut self, offset: u64, out: &mut [u8]) {
        for (number, _, at, length) in split_blocks(offset, out.len()) {
            let part = &mut out[at..at + length];
            let Err(error) = self.read_file(offset + at as u64, part) else { continue };
            part.fill(0);
            if self.unreadable.insert(number) {
                let byte = number * BLOCK_BYTES as u64;
                tracing::error!(
                    byte, %error, "block of a file cannot be read and counts as damaged"
                );
            }
        }
    }

    fn read_file(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let there = self.file_bytes.saturating_sub(offset).min(out.len() as u64) as usize;
        out[there..].fill(0);
        if there == 0 {
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.read_exact(&mut out[..there])
    }

    fn check_bounds(&self, offset: u64, bytes: usize) -> io::Result<()> {
        match offset.checked_add(bytes as u64) {
            Some(end) if end <= self.bytes || self.is_padded => Ok(()),
            _ => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Splits a range of bytes into parts, one for each block: number of the block, offset in the
/// block, offset in the range, and length.
fn split_blocks(offset: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= bytes {
            return None;
        }
        let at = offset + done as u64;
        let inside = (at % BLOCK_BYTES as u64) as usize;
        let length = (BLOCK_BYTES - inside).min(bytes - done);
        let part = (at / BLOCK_BYTES as u64, inside, done, length);
        done += length;
        Some(part)
    })
}

impl<F: Read + Seek + Send + 'static> StorageBackend for OverlayBackend<F> {
    fn len(&self) -> io::Result<u64> {
        Ok(lock(&self.overlay).bytes)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let is_closed = lock(&self.is_closed);
        if *is_closed {
            return Err(io::Error::other("the file is open for writing again; retry"));
        }
        let mut overlay = lock(&self.overlay);
        overlay.check_bounds(offset, out.len())?;
        overlay.read_file_padded(offset, out)?;
        for (number, inside, at, length) in split_blocks(offset, out.len()) {
            if let Some(block) = overlay.written.get(&number) {
                out[at..at + length].copy_from_slice(&block[inside..inside + length]);
            }
        }
        Ok(())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let mut overlay = lock(&self.overlay);
        overlay.bytes = bytes;
        overlay.file_bytes = overlay.file_bytes.min(bytes);
        let end = bytes.div_ceil(BLOCK_BYTES as u64);
        overlay.written.retain(|number, _| *number < end);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut overlay = lock(&self.overlay);
        overlay.check_bounds(offset, data.len())?;
        for (number, inside, at, length) in split_blocks(offset, data.len()) {
            let mut block = overlay.block(number)?;
            block[inside..inside + length].copy_from_slice(&data[at..at + length]);
            overlay.written.insert(number, block);
        }
        Ok(())
    }

    // No other process sees the overlay, so every lock is free.

    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn try_lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }

    fn lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn lock_shared_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn unlock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<(), BackendError> {
        Ok(())
    }

    fn query_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use redb::{Database, ReadableTable as _, TableDefinition};
    use tempfile::TempDir;

    use super::*;

    const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("table");

    /// Creates a file with 300 entries, which is open.
    fn open() -> (TempDir, PathBuf, Database) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("file.redb");
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        for number in 0..300_u64 {
            let mut table = transaction.open_table(TABLE).unwrap();
            table.insert(number, &[7_u8; 3000][..]).unwrap();
        }
        transaction.commit().unwrap();
        (dir, path, database)
    }

    /// Creates a file with 300 entries and closes it.
    fn closed() -> (TempDir, PathBuf) {
        let (dir, path, database) = open();
        drop(database);
        (dir, path)
    }

    /// Returns the offsets of the values in a file.
    fn value_offsets(whole: &[u8]) -> impl Iterator<Item = usize> {
        let values = whole.windows(64).enumerate().filter(|(_, bytes)| *bytes == [7; 64]);
        values.map(|(at, _)| at)
    }

    #[test]
    fn view_reads_an_open_file_and_changes_nothing() {
        let (_dir, path, _database) = open();
        let before = fs::read(&path).unwrap();
        let view = open_view(&path).unwrap();
        let table = view.begin_read().unwrap().open_table(TABLE).unwrap();
        assert_eq!(table.iter().unwrap().count(), 300);
        drop((view, table));
        assert!(matches!(check_integrity(&path).unwrap(), Integrity::Intact));
        assert!(fs::read(&path).unwrap() == before);
    }

    /// A file with a block that cannot be read.
    struct Flaky {
        file: File,
        block: u64,
    }

    impl Read for Flaky {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let from = self.file.stream_position()?;
            let block = self.block * BLOCK_BYTES as u64;
            if from < block + BLOCK_BYTES as u64 && block < from + out.len() as u64 {
                return Err(io::Error::other("the disk reports a read error"));
            }
            self.file.read(out)
        }
    }

    impl Seek for Flaky {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.file.seek(to)
        }
    }

    #[test]
    fn unreadable_block_damages_only_its_entries() {
        let (_dir, path) = closed();
        let whole = fs::read(&path).unwrap();
        let mut lost = Vec::new();
        for at in value_offsets(&whole).step_by(200_000) {
            let (file, block) = (File::open(&path).unwrap(), (at / BLOCK_BYTES) as u64);
            let backend =
                OverlayBackend::new(Flaky { file, block }, whole.len() as u64, true).unwrap();
            let view = open_view_on(&path, backend).unwrap();
            let table = view.begin_read().unwrap().open_table(TABLE).unwrap();
            let is_there = |number: &u64| {
                let found = guarded(OP_READ, || table.get(*number).map_err(redb_error(OP_READ)));
                found.is_ok_and(|found| found.is_some())
            };
            lost.push(300 - (0..300).filter(is_there).count());
        }
        assert!(lost.iter().all(|lost| *lost < 10) && lost.iter().sum::<usize>() > 0, "{lost:?}");
    }

    #[test]
    fn checksums_detect_every_changed_byte() {
        let (_dir, path) = closed();
        let whole = fs::read(&path).unwrap();
        let value_offsets: Vec<usize> = value_offsets(&whole).step_by(20_000).collect();
        assert!(value_offsets.len() > 30);
        for at in value_offsets {
            let mut damaged = whole.clone();
            damaged[at + 30] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert!(matches!(check_integrity(&path).unwrap(), Integrity::Damaged(_)), "{at}");
        }
    }
}
