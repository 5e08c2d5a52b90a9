//! The folder of a file projection.
//!
//! A typed component may have write access to this folder, to a folder in it, or to a folder that
//! contains it. Such a component can create links there. The host therefore follows no links below
//! the root, which is a folder that no component can replace. Each component of a path is looked up
//! in the open folder that precedes it.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use cap_primitives::ambient_authority;
use cap_primitives::fs::{DirOptions, create_dir, open_ambient_dir, open_dir_nofollow};

/// The folder of a file projection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FilesFolder {
    root: PathBuf,
    /// Names of the folders below `root`.
    below: PathBuf,
}

impl FilesFolder {
    /// Returns a folder. A relative path starts from the data folder.
    pub(crate) fn new(data: &Path, folder: &Path) -> Self {
        let folder = data.join(folder);
        let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
        match folder.strip_prefix(data) {
            Ok(below) if below.components().all(is_name) => {
                Self { root: data.to_owned(), below: below.to_owned() }
            }
            Ok(_) | Err(_) => Self { root: folder, below: PathBuf::new() },
        }
    }

    /// Returns the path of the folder.
    pub(crate) fn path(&self) -> PathBuf {
        self.root.iter().chain(self.below.iter()).collect()
    }

    /// Returns the part of the path on which links are followed: the data folder, or the whole path
    /// of a folder outside of the data folder, which only the operator can name. No component may
    /// be able to replace a part of it.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Opens the folder.
    ///
    /// # Errors
    ///
    /// Errors of the file system, also if a part of the path below [`FilesFolder::root`] is a link.
    pub(crate) fn open(&self) -> io::Result<File> {
        let root = open_ambient_dir(&self.root, ambient_authority())?;
        self.below.iter().try_fold(root, |folder, name| open_dir_nofollow(&folder, name.as_ref()))
    }

    /// Opens a folder below this folder. Creates all folders that are missing.
    ///
    /// # Errors
    ///
    /// The errors of [`FilesFolder::open`].
    pub(crate) fn create(&self, inside: &Path) -> io::Result<File> {
        fs::create_dir_all(&self.root)?;
        let root = open_ambient_dir(&self.root, ambient_authority())?;
        let mut names = self.below.iter().chain(inside.iter());
        names.try_fold(root, |folder, name| open_or_create(&folder, name.as_ref()))
    }
}

fn open_or_create(folder: &File, name: &Path) -> io::Result<File> {
    match create_dir(folder, name, &DirOptions::new()) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => open_dir_nofollow(folder, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_up_to_the_data_folder_or_to_a_folder_outside_of_it() {
        let data = Path::new("/srv/../data");
        for (folder, path, root) in [
            ("logs/io", "/srv/../data/logs/io", "/srv/../data"),
            ("./logs", "/srv/../data/logs", "/srv/../data"),
            ("/srv/../data/logs", "/srv/../data/logs", "/srv/../data"),
            ("logs/../x", "/srv/../data/logs/../x", "/srv/../data/logs/../x"),
            ("/var/log", "/var/log", "/var/log"),
        ] {
            let folder = FilesFolder::new(data, Path::new(folder));
            assert_eq!(
                (folder.path().as_path(), folder.root()),
                (Path::new(path), Path::new(root))
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_below_the_data_folder_is_not_followed() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in ["disk/data/out", "disk/other"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        symlink("disk/data", root.join("data")).unwrap();
        symlink("../../other", root.join("disk/data/out/link")).unwrap();
        let data = root.join("data");
        let of = |folder: &str| FilesFolder::new(&data, Path::new(folder));
        of("out").create(Path::new("a/b")).unwrap();
        of("out/a/b").open().unwrap();
        assert!(root.join("disk/data/out/a/b").is_dir());
        for (folder, inside) in [("out/link", ""), ("out/link/x", ""), ("out", "link/x")] {
            of(folder).create(Path::new(inside)).unwrap_err();
        }
        of("out/link").open().unwrap_err();
        assert_eq!(fs::read_dir(root.join("disk/other")).unwrap().count(), 0);
    }
}
