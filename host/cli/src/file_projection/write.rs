//! Writes files atomically, and compares them with existing files. Neither operation needs the
//! whole file in memory.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use cap_primitives::fs::{OpenOptions, open, remove_file, rename};
use wattle_graph::json_text::LimitedWriter;

use crate::file_projection::content::FileContent;
use crate::files_folder::FilesFolder;

/// A file that was written, or that already had the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrittenFile {
    /// Size of the file.
    pub(super) bytes: u64,
    /// False if the file had this content before.
    pub(super) is_new: bool,
}

/// Writes a file, unless the file already exists with the same content. `path` is relative to the
/// folder. `seq` is the sequence number of the event.
///
/// # Errors
///
/// [`ErrorKind::FileTooLarge`] if the file would have more than `limit` bytes; errors of the file
/// system, also if a folder on the way to the file is a link.
pub(super) fn file(
    folder: &FilesFolder,
    path: &Path,
    seq: u64,
    content: &FileContent,
    limit: u64,
) -> io::Result<WrittenFile> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the path has no name of a file"));
    };
    let folder = folder.create(path.parent().unwrap_or_else(|| Path::new("")))?;
    let mut name = PathBuf::from(name);
    match compare(&folder, &name, content, limit)? {
        Comparison::Missing => {}
        Comparison::Same(bytes) => return Ok(WrittenFile { bytes, is_new: false }),
        Comparison::Different => {
            // The file of another event has this name, so the sequence number is added to the name.
            name = numbered_name(&name, seq);
            if let Comparison::Same(bytes) = compare(&folder, &name, content, limit)? {
                return Ok(WrittenFile { bytes, is_new: false });
            }
        }
    }
    let draft = name.with_extension("draft");
    let renamed = write(&folder, &draft, content, limit).and_then(|bytes| {
        rename(&folder, &draft, &folder, &name)?;
        Ok(WrittenFile { bytes, is_new: true })
    });
    renamed.inspect_err(|_| {
        // The first error is reported. If the draft cannot be removed, the next attempt removes it.
        let _ = remove_file(&folder, &draft);
    })
}

/// Writes content to a new file and returns its size. An existing entry with this name, such as the
/// draft of a crashed host or a symbolic link, is removed.
fn write(folder: &File, name: &Path, content: &FileContent, limit: u64) -> io::Result<u64> {
    match remove_file(folder, name) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    // `create_new` ensures that the file is not opened through a link.
    let file = open(folder, name, OpenOptions::new().write(true).create_new(true))?;
    let mut out = LimitedWriter::new(BufWriter::new(file), limit);
    content.write_to(&mut out)?;
    Ok(out.written())
}

fn numbered_name(path: &Path, seq: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match path.extension() {
        Some(ending) => path.with_file_name(format!("{stem}-{seq}.{}", ending.to_string_lossy())),
        None => path.with_file_name(format!("{stem}-{seq}")),
    }
}

/// The comparison of a file with content.
enum Comparison {
    /// The file does not exist, or cannot be read. It can be a symbolic link that points out of its
    /// folder, which the new file replaces.
    Missing,
    /// The file has the same content, with this number of bytes.
    Same(u64),
    /// The content of the file differs.
    Different,
}

fn compare(
    folder: &File,
    name: &Path,
    content: &FileContent,
    limit: u64,
) -> io::Result<Comparison> {
    let Ok(found) = open(folder, name, OpenOptions::new().read(true)) else {
        return Ok(Comparison::Missing);
    };
    let mut out = LimitedWriter::new(ComparingWriter(BufReader::new(found)), limit);
    match content.write_to(&mut out) {
        Ok(()) if out.get_mut().is_at_end() => Ok(Comparison::Same(out.written())),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => Err(error),
        Ok(()) | Err(_) => Ok(Comparison::Different),
    }
}

/// A writer that compares its input with a file, and fails at the first difference.
struct ComparingWriter(BufReader<File>);

impl ComparingWriter {
    fn is_at_end(&mut self) -> bool {
        self.0.fill_buf().is_ok_and(<[u8]>::is_empty)
    }
}

impl Write for ComparingWriter {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let found = self.0.fill_buf()?;
        let length = found.len().min(part.len());
        if (length == 0 && !part.is_empty()) || found[..length] != part[..length] {
            return Err(io::Error::other("the content of the file differs"));
        }
        self.0.consume(length);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn put(path: &Path, seq: u64, n: u64, limit: u64) -> io::Result<WrittenFile> {
        let folder = FilesFolder::new(path.parent().unwrap(), Path::new(""));
        file(&folder, Path::new(path.file_name().unwrap()), seq, &json!({ "n": n }).into(), limit)
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn writing_a_file_again_changes_nothing_and_equal_names_get_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/x.json");
        for is_new in [true, false] {
            let written = WrittenFile { bytes: 13, is_new };
            assert_eq!(put(&path, 7, 1, 100).unwrap(), written);
            assert_eq!(put(&path, 1_007, 2, 100).unwrap(), written);
        }
        assert_eq!(names(path.parent().unwrap()), ["x-1007.json", "x.json"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n  \"n\": 1\n}\n");
    }

    #[test]
    fn a_file_that_only_begins_with_the_content_is_different() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        for found in ["", "{\n  \"n\": 1\n", "{\n  \"n\": 1\n}\n\n"] {
            fs::write(&path, found).unwrap();
            assert!(put(&path, 7, 1, 100).unwrap().is_new, "{found:?}");
            fs::remove_file(folder.path().join("x-7.json")).unwrap();
        }
    }

    #[test]
    fn a_file_above_the_size_limit_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        assert_eq!(put(&path, 7, 1, 12).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(names(folder.path()).is_empty());
        put(&path, 7, 1, 13).unwrap();
        assert_eq!(put(&path, 7, 1, 12).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(names(folder.path()), ["x.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn write_replaces_symlinks_instead_of_following_them() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs");
        fs::create_dir(&logs).unwrap();
        fs::write(folder.path().join("host"), "secret").unwrap();
        for name in ["x.json", "x.draft", "y.draft"] {
            symlink("../host", logs.join(name)).unwrap();
        }
        for name in ["x.json", "y.json"] {
            assert!(put(&logs.join(name), 7, 1, 100).unwrap().is_new);
            assert!(logs.join(name).symlink_metadata().unwrap().is_file());
        }
        assert_eq!(names(&logs), ["x.json", "y.json"]);
        assert_eq!(fs::read_to_string(folder.path().join("host")).unwrap(), "secret");
    }
}
