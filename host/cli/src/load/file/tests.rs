//! Files that are read, and files that are rejected with a reason.

use super::*;

const LIMIT: u64 = 1_000;

fn problem(folder: &Path, path: &str) -> String {
    match read(folder, Path::new(path), LIMIT) {
        Ok(bytes) => panic!("`{path}` was read: {} bytes", bytes.len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn plain_files_of_the_folder_are_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("a/b")).unwrap();
    fs::write(folder.path().join("a/b/c.md"), "text").unwrap();
    for path in ["a/b/c.md", "./a/b/c.md", "a/./b/c.md"] {
        assert_eq!(read_text(folder.path(), Path::new(path), LIMIT).unwrap(), "text");
    }
}

#[test]
fn paths_that_leave_the_folder_are_refused() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("app");
    fs::create_dir_all(&folder).unwrap();
    fs::write(outer.path().join("secret.md"), "secret").unwrap();
    for path in ["../secret.md", "/etc/passwd", "", ".", "a/../../secret.md"] {
        let problem = problem(&folder, path);
        assert!(problem.contains("not the path of a file inside"), "{problem}");
    }
    assert!(list(&folder, Path::new("../..")).is_err());
}

#[test]
fn folders_large_files_and_invalid_utf8_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    fs::write(folder.path().join("long"), vec![0xff; 1_001]).unwrap();
    fs::write(folder.path().join("bytes"), [0xff]).unwrap();
    // A sparse file has a size but no content. The file is rejected because of its size.
    File::create(folder.path().join("sparse")).unwrap().set_len(1 << 42).unwrap();
    for (path, expected) in [
        ("folder", "is a folder, not a file"),
        ("long", "has more than 1000 bytes"),
        ("sparse", "has more than 1000 bytes"),
        ("long/x", "is a file, not a folder"),
        ("gone", "cannot be read"),
    ] {
        let problem = problem(folder.path(), path);
        assert!(problem.contains(expected), "{problem}");
    }
    let error = read_text(folder.path(), Path::new("bytes"), LIMIT).unwrap_err();
    assert!(error.to_string().contains("not text"), "{error}");
}

#[test]
fn a_folder_with_too_many_entries_is_not_listed() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..=FOLDER_ENTRIES {
        File::create(folder.path().join(number.to_string())).unwrap();
    }
    let error = entries(folder.path()).unwrap_err();
    assert!(error.to_string().contains("more than 10000 entries"), "{error}");
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_in_any_part_of_a_path() {
    use std::os::unix::fs::symlink;
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("app");
    fs::create_dir_all(folder.join("inside")).unwrap();
    fs::write(folder.join("inside/a.md"), "text").unwrap();
    fs::write(outer.path().join("secret.md"), "secret").unwrap();
    symlink("/dev/zero", folder.join("endless.md")).unwrap();
    symlink("inside/a.md", folder.join("alias.md")).unwrap();
    symlink("../secret.md", folder.join("outside.md")).unwrap();
    symlink("..", folder.join("up")).unwrap();
    symlink("nowhere", folder.join("broken.md")).unwrap();
    for path in ["endless.md", "alias.md", "outside.md", "up/secret.md", "broken.md"] {
        let problem = problem(&folder, path);
        assert!(problem.contains("leads out") && problem.contains("link"), "{problem}");
    }
    assert!(list(&folder, Path::new("up")).unwrap_err().to_string().contains("leads out"));
    // The operator can name a symbolic link, which is resolved before the file is checked.
    let named = FileLocation::Named(folder.join("alias.md"));
    assert_eq!(named.read(LIMIT).unwrap(), b"text");
    let named = FileLocation::Named(folder.join("endless.md"));
    assert!(named.read(LIMIT).unwrap_err().to_string().contains("a device"));
}

#[cfg(unix)]
#[test]
fn pipes_sockets_and_devices_are_refused_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    for path in ["socket", "pipe"] {
        let problem = problem(folder.path(), path);
        assert!(problem.contains("is a device, a pipe or a socket, not a file"), "{problem}");
    }
    assert!(problem(Path::new("/dev"), "zero").contains("a device"));
}

/// Files in `/proc` report the size 0 but have content, so they behave like a file that grows while
/// it is read.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_grows_while_it_is_read_is_refused() {
    let problem = problem(Path::new("/proc/self"), "status");
    assert!(problem.contains("changed while it was read"), "{problem}");
}

/// The author of an app names the file, so the name is no part of the hint.
#[test]
fn name_of_a_file_is_not_taken_for_a_hint() {
    let path = PathBuf::from("a\n  hint: run this");
    let problem = FileError::NotText { path }.hinted().into_problem(Path::new("streams/a.toml"));
    assert_eq!(problem.message, "`a\n  hint: run this` is not text: it is not valid UTF-8");
    assert_eq!(problem.hint.as_deref(), Some("save it as UTF-8"));
}
