//! Reads files of apps and plugins. The kind, size and location of a file are checked before it is
//! read.
//!
//! Files in the plugins folder are untrusted. The path of a file is resolved one component at a
//! time from the app's folder, and no component may be a symbolic link. Therefore no file outside
//! of the folder is opened, even if another process replaces a component of the path in the
//! meantime. Only regular files are opened: a device may have no end, and a pipe or a socket blocks
//! its reader. At most `limit` bytes are read, and a file that changes while it is read is
//! rejected.

use std::error::Error;
use std::fmt;
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use cap_primitives::ambient_authority;
use cap_primitives::fs::{
    FollowSymlinks, OpenOptions, open, open_ambient_dir, open_dir_nofollow, stat,
};
use wattle_graph::check::DOCUMENT_LIMIT_BYTES;

use crate::load::hinted_message::HintedMessage;

/// Maximum size of `app.toml` in bytes. The manifest contains names and settings; the manifests of
/// the bundled apps have about 4 KiB.
pub const MANIFEST_BYTES: u64 = 1 << 20;

/// Maximum size in bytes of a graph file, of a text file that a node uses, and of a stream
/// description. The graph crate applies the same limit to the documents that contain these files.
pub const DOCUMENT_BYTES: u64 = DOCUMENT_LIMIT_BYTES as u64;

/// Maximum size of a component in bytes. This size equals the limit of the sandbox.
pub const COMPONENT_BYTES: u64 = 64 << 20;

/// Maximum size of a migration in bytes. The limit is high, because a migration can also insert
/// rows.
pub const MIGRATION_BYTES: u64 = 16 << 20;

/// Maximum number of entries of a folder that is listed for an app.
pub const FOLDER_ENTRIES: usize = 10_000;

/// The reason why a file or folder cannot be read. As text, it has a hint.
#[derive(Debug)]
pub enum FileError {
    /// The path does not point to a file within the folder.
    Outside {
        /// The path as the app names it.
        path: PathBuf,
    },
    /// A component of the path is a symbolic link.
    Link {
        /// The link.
        path: PathBuf,
    },
    /// The path points to another kind of file than expected.
    Kind {
        /// The path.
        path: PathBuf,
        /// The kind that was found.
        found: &'static str,
        /// The kind that was expected.
        expected: &'static str,
    },
    /// The file is too large.
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The folder has too many entries.
    TooMany {
        /// The folder.
        path: PathBuf,
        /// Maximum number of entries.
        limit: usize,
    },
    /// A folder and its subfolders have too many entries.
    TooManyBelow {
        /// The folder.
        path: PathBuf,
        /// Maximum number of entries.
        limit: usize,
    },
    /// Several files are too large together.
    TooLargeTogether {
        /// The files.
        what: String,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The file changed while it was read.
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The content of a text file is not UTF-8.
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The operating system reports an error.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl FileError {
    /// Returns the message, and the hint if there is one.
    pub fn hinted(&self) -> HintedMessage {
        match self {
            Self::Outside { path } => HintedMessage::new(
                format!("`{}` is not the path of a file inside of the folder", path.display()),
                "name it relative to the folder, without `..`",
            ),
            Self::Link { path } => HintedMessage::new(
                format!(
                    "`{}` leads out of the folder: it is a symbolic link, and links are not \
                     followed",
                    path.display()
                ),
                "put the file or folder itself there, or name its place in wattle.toml under \
                 `[apps.<app>]` as `path` or in `components`",
            ),
            Self::Kind { path, found, expected } => HintedMessage::new(
                format!("`{}` is {found}, not {expected}", path.display()),
                format!("remove it, or put {expected} there"),
            ),
            Self::TooLarge { path, limit } => HintedMessage::new(
                format!("`{}` has more than {limit} bytes", path.display()),
                "make it smaller, or remove it",
            ),
            Self::TooMany { path, limit } => HintedMessage::new(
                format!("`{}` has more than {limit} entries", path.display()),
                "remove what does not belong there",
            ),
            Self::TooManyBelow { path, limit } => HintedMessage::new(
                format!(
                    "`{}` and its subfolders have more than {limit} files and folders",
                    path.display()
                ),
                "move what does not belong there elsewhere",
            ),
            Self::TooLargeTogether { what, limit } => HintedMessage::new(
                format!("{what} have more than {limit} bytes together"),
                "make them smaller, or remove some",
            ),
            Self::Changed { path } => HintedMessage::new(
                format!("`{}` changed while it was read", path.display()),
                "write the new file beside it and rename it into place",
            ),
            Self::NotText { path } => HintedMessage::new(
                format!("`{}` is not text: it is not valid UTF-8", path.display()),
                "save it as UTF-8",
            ),
            Self::Unreadable { path, source } => {
                HintedMessage::plain(format!("`{}` cannot be read: {source}", path.display()))
            }
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.hinted(), f)
    }
}

impl Error for FileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The location of a file, depending on who named its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileLocation {
    /// A path within a folder, named by the author of the folder.
    Inside {
        /// The folder.
        folder: PathBuf,
        /// Path relative to the folder.
        path: PathBuf,
    },
    /// An arbitrary path, named by the operator.
    Named(PathBuf),
}

impl FileLocation {
    /// Returns the path of the file.
    pub fn path(&self) -> PathBuf {
        match self {
            Self::Inside { folder, path } => folder.join(path),
            Self::Named(path) => path.clone(),
        }
    }

    /// Reads the file.
    ///
    /// # Errors
    ///
    /// [`FileError`].
    pub fn read(&self, limit: u64) -> Result<Vec<u8>, FileError> {
        match self {
            Self::Inside { folder, path } => read(folder, path, limit),
            Self::Named(path) => {
                // Symbolic links in a path of the operator are resolved before the file is checked.
                let real = path.canonicalize().map_err(|source| unreadable(path, source))?;
                match (real.parent(), real.file_name()) {
                    (Some(folder), Some(name)) => read(folder, Path::new(name), limit),
                    _ => Err(FileError::Kind { path: real, found: "a folder", expected: FILE }),
                }
            }
        }
    }
}

/// Term for a regular file in error messages.
const FILE: &str = "a file";

/// Reads a file within a folder.
///
/// # Errors
///
/// [`FileError`].
pub fn read(folder: &Path, path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let shown = folder.join(path);
    let file = open_inside(folder, &parts(path)?)?;
    read_whole(file, &shown, limit)
}

/// Reads a text file within a folder.
///
/// # Errors
///
/// [`FileError`].
pub fn read_text(folder: &Path, path: &Path, limit: u64) -> Result<String, FileError> {
    let bytes = read(folder, path, limit)?;
    String::from_utf8(bytes).map_err(|_| FileError::NotText { path: folder.join(path) })
}

/// The total size of several files, which has a limit.
#[derive(Clone, Debug)]
pub struct TotalSize {
    what: String,
    limit: u64,
    left: u64,
}

impl TotalSize {
    /// Creates a total of zero bytes. `what` describes the files in the error.
    pub fn new(what: impl Into<String>, limit: u64) -> Self {
        Self { what: what.into(), limit, left: limit }
    }

    /// Adds the size of a file.
    ///
    /// # Errors
    ///
    /// [`FileError::TooLargeTogether`].
    pub fn add(&mut self, bytes: u64) -> Result<(), FileError> {
        let too_large =
            || FileError::TooLargeTogether { what: self.what.clone(), limit: self.limit };
        self.left = self.left.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }
}

fn read_whole(mut file: File, shown: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let failed = |source| unreadable(shown, source);
    let before = file.metadata().map_err(failed)?;
    if !before.is_file() {
        return Err(wrong_kind(shown, before.file_type(), FILE));
    }
    if before.len() > limit {
        return Err(FileError::TooLarge { path: shown.to_owned(), limit });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(before.len()).unwrap_or_default());
    // Reading one byte more than the previous size shows whether the file has grown.
    file.by_ref().take(before.len() + 1).read_to_end(&mut bytes).map_err(failed)?;
    let after = file.metadata().map_err(failed)?;
    if bytes.len() as u64 != before.len() || is_other(&before, &after) {
        return Err(FileError::Changed { path: shown.to_owned() });
    }
    Ok(bytes)
}

fn is_other(before: &Metadata, after: &Metadata) -> bool {
    before.len() != after.len() || before.modified().ok() != after.modified().ok()
}

/// An entry of a folder.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Path of the entry.
    pub path: PathBuf,
    /// Kind of the entry. Symbolic links are not followed.
    pub kind: FileType,
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl Entry {
    /// Returns the name, or `None` if it is not UTF-8.
    pub fn name(&self) -> Option<&str> {
        self.path.file_name().and_then(|name| name.to_str())
    }

    /// Returns true if the name has the extension `ending`.
    pub fn has_ending(&self, ending: &str) -> bool {
        self.path.extension().is_some_and(|it| it == ending)
    }
}

/// Lists a folder within another folder, sorted by name.
///
/// # Errors
///
/// [`FileError`]; [`FileError::TooMany`] for more than [`FOLDER_ENTRIES`] entries.
pub fn list(folder: &Path, path: &Path) -> Result<Vec<Entry>, FileError> {
    let mut at = folder.to_owned();
    for part in parts(path)? {
        at.push(part);
        let kind = at.symlink_metadata().map_err(|source| unreadable(&at, source))?.file_type();
        if !kind.is_dir() {
            return Err(wrong_kind(&at, kind, "a folder"));
        }
    }
    entries(&at)
}

/// Lists a folder, sorted by name.
///
/// # Errors
///
/// [`FileError`]; [`FileError::TooMany`] for more than [`FOLDER_ENTRIES`] entries.
pub fn entries(folder: &Path) -> Result<Vec<Entry>, FileError> {
    let failed = |source| unreadable(folder, source);
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        if entries.len() == FOLDER_ENTRIES {
            return Err(FileError::TooMany { path: folder.to_owned(), limit: FOLDER_ENTRIES });
        }
        let path = entry.map_err(failed)?.path();
        // An entry that was deleted after it was listed is skipped.
        let Ok(metadata) = path.symlink_metadata() else { continue };
        entries.push(Entry { path, kind: metadata.file_type(), bytes: metadata.len() });
    }
    entries.sort_by(|one, two| one.path.cmp(&two.path));
    Ok(entries)
}

/// Splits a path that is relative to a folder into its components. Fails if the path is empty or
/// may leave the folder.
fn parts(path: &Path) -> Result<Vec<&Path>, FileError> {
    let outside = || FileError::Outside { path: path.to_owned() };
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(Path::new(name)),
            Component::CurDir => {}
            _ => return Err(outside()),
        }
    }
    if parts.is_empty() { Err(outside()) } else { Ok(parts) }
}

fn unreadable(path: &Path, source: io::Error) -> FileError {
    FileError::Unreadable { path: path.to_owned(), source }
}

fn wrong_kind(path: &Path, kind: FileType, expected: &'static str) -> FileError {
    let path = path.to_owned();
    if kind.is_symlink() {
        return FileError::Link { path };
    }
    let found = if kind.is_dir() {
        "a folder"
    } else if kind.is_file() {
        FILE
    } else {
        "a device, a pipe or a socket"
    };
    FileError::Kind { path, found, expected }
}

/// Opens a file by resolving its path from a folder one component at a time.
fn open_inside(folder: &Path, parts: &[&Path]) -> Result<File, FileError> {
    let mut shown = folder.to_owned();
    let mut at = open_ambient_dir(folder, ambient_authority())
        .map_err(|source| unreadable(&shown, source))?;
    for (index, part) in parts.iter().enumerate() {
        shown.push(part);
        at = step(&at, part, &shown, index + 1 == parts.len())?;
    }
    Ok(at)
}

fn step(at: &File, part: &Path, shown: &Path, is_last: bool) -> Result<File, FileError> {
    debug_assert!(matches!(part.components().next(), Some(Component::Normal(_))));
    let failed = |source| unreadable(shown, source);
    // The kind is checked before the file is opened, because opening a device can have an effect.
    // The flags of the call and a check of the opened handle ensure that the file is not replaced
    // in between.
    let metadata = stat(at, part, FollowSymlinks::No).map_err(failed)?;
    let (is_expected, name) =
        if is_last { (metadata.is_file(), FILE) } else { (metadata.is_dir(), "a folder") };
    if !is_expected {
        return Err(match shown.symlink_metadata() {
            Ok(metadata) => wrong_kind(shown, metadata.file_type(), name),
            Err(source) => unreadable(shown, source),
        });
    }
    let opened = if is_last { open_regular(at, part) } else { open_dir_nofollow(at, part) };
    opened.map_err(failed)
}

/// Opens a file without blocking on a pipe or device. If a link has replaced the file, the call
/// fails and opens nothing outside of the folder.
fn open_regular(folder: &File, name: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits();
        let flags = i32::try_from(flags).map_err(io::Error::other)?;
        cap_primitives::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    open(folder, name, &options)
}

#[cfg(test)]
mod tests;
