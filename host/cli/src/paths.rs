//! Resolution of the symbolic links in a path, and the directory entries through which a path
//! leads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Returns the canonical path, so that each file and folder has a single path. A path that does not
/// exist stays as it is.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Returns a path with its links resolved. The parts that do not exist stay as they are.
pub(crate) fn resolve_links(path: &Path) -> PathBuf {
    let existing = |above: &Path| {
        let rest = path.strip_prefix(above).ok()?;
        let above = above.canonicalize().ok()?;
        Some(if rest.as_os_str().is_empty() { above } else { above.join(rest) })
    };
    path.ancestors().find_map(existing).unwrap_or_else(|| path.to_owned())
}

/// Returns the directory entries through which a path leads: the entries of its own components, of
/// the components of each link, and of its target. A program that replaces one of these entries
/// changes the target of the path. The folders of all entries are resolved.
pub(crate) fn path_entries(path: &Path) -> BTreeSet<PathBuf> {
    let mut entries = BTreeSet::new();
    let mut remaining = vec![path.to_owned()];
    while let Some(path) = remaining.pop() {
        for part in path.ancestors() {
            let (Some(folder), Some(name)) = (part.parent(), part.file_name()) else { continue };
            let folder = resolve_links(folder);
            let entry = folder.join(name);
            let target = entry.read_link();
            // Each link is followed only once, so that the loop ends for a cycle of links.
            if entries.insert(entry)
                && let Ok(target) = target
            {
                remaining.push(folder.join(target));
            }
        }
    }
    entries.insert(resolve_links(path));
    entries
}

/// Returns true if a path leads through a folder. A program that may write to the folder can then
/// change the target of the path. The path of the folder itself does not lead through the folder.
pub(crate) fn leads_through(path: &Path, folder: &Path) -> bool {
    path_entries(path).iter().any(|entry| entry != folder && entry.starts_with(folder))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::create_dir_all;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    #[test]
    fn the_existing_part_of_a_missing_path_is_resolved() {
        let (_folder, root) = folder();
        create_dir_all(root.join("code")).unwrap();
        symlink("code", root.join("link")).unwrap();
        assert_eq!(resolve_links(&root.join("link")), root.join("code"));
        assert_eq!(resolve_links(&root.join("link/new/../x")), root.join("code/new/../x"));
    }

    #[test]
    fn the_entries_of_a_path_include_each_link_on_its_way() {
        let (_folder, root) = folder();
        create_dir_all(root.join("a/b")).unwrap();
        create_dir_all(root.join("end")).unwrap();
        symlink("a/b/second", root.join("first")).unwrap();
        symlink("../../end", root.join("a/b/second")).unwrap();
        let entries = path_entries(&root.join("first/new"));
        for entry in ["first", "a", "a/b", "a/b/second", "end", "end/new"] {
            assert!(entries.contains(&root.join(entry)), "{entry}: {entries:?}");
        }
        assert!(!entries.contains(&root.join("first/new")));
    }

    #[test]
    fn a_cycle_of_links_does_not_cause_an_endless_loop() {
        let (_folder, root) = folder();
        symlink("two", root.join("one")).unwrap();
        symlink("one", root.join("two")).unwrap();
        let entries = path_entries(&root.join("one/x"));
        assert!(entries.contains(&root.join("one")) && entries.contains(&root.join("two")));
    }
}
