//! The files of the studio. A release build embeds them, and a debug build reads them from the
//! repository.

#[cfg(test)]
#[path = "../build/studio.rs"]
mod table;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use wattle_api::studio::Studio;
use wattle_run::page::PageFiles;

use crate::load::page;

// The included code defines `FOLDER`, the folder from which a debug build reads the files, and
// `FILES`, the files that a release build embeds.
include!(concat!(env!("OUT_DIR"), "/studio.rs"));

/// The folder of the built files, below the folder of the studio.
const BUILT: &str = "dist";

/// The document that a browser loads.
const INDEX: &str = "index.html";

/// Opens the studio. If `folder` is given, the files are read from this folder of a studio, in
/// place of the default folder or the embedded files.
pub(crate) fn open(folder: Option<PathBuf>) -> Studio {
    let folder = folder.or_else(|| FOLDER.map(PathBuf::from));
    Studio::new(move || {
        let files = match &folder {
            Some(folder) => read(folder),
            None => embedded(FILES),
        };
        let files = files.transpose();
        files.unwrap_or_else(|error| {
            tracing::warn!(error, "the studio cannot be served");
            None
        })
    })
}

/// Reads the built files below a folder; returns `None` if the studio is not built.
fn read(folder: &Path) -> Option<Result<PageFiles, String>> {
    let is_built = folder.join(BUILT).join(INDEX).exists();
    is_built.then(|| page::read_files(folder, Path::new(BUILT), INDEX))
}

/// Returns embedded files; `None` if the studio was not built before the binary.
fn embedded(files: &[(&str, &'static [u8])]) -> Option<Result<PageFiles, String>> {
    let contents = files.iter().map(|&(name, bytes)| (name.to_owned(), Bytes::from_static(bytes)));
    (!files.is_empty()).then(|| page::assemble(contents.collect(), INDEX))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Writes the files of a built studio.
    fn built() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("dist/assets")).unwrap();
        fs::write(folder.path().join("dist/index.html"), "<head></head>").unwrap();
        fs::write(folder.path().join("dist/assets/main-1a2b.js"), "plain").unwrap();
        fs::write(folder.path().join("dist/assets/main-1a2b.js.br"), "brotli").unwrap();
        folder
    }

    #[test]
    fn a_release_build_embeds_the_built_files() {
        let folder = built();
        let code = table::code(folder.path(), true).unwrap();
        assert!(code.starts_with("const FOLDER: Option<&str> = None;\n"), "{code}");
        for name in ["index.html", "assets/main-1a2b.js", "assets/main-1a2b.js.br"] {
            assert!(code.contains(&format!("    ({name:?}, include_bytes!(\"")), "{code}");
        }
        let empty = tempfile::tempdir().unwrap();
        let code = table::code(empty.path(), true).unwrap();
        assert!(code.ends_with("= &[\n];\n"), "{code}");
    }

    #[test]
    fn a_debug_build_contains_the_path_of_the_folder_and_no_files() {
        let folder = built();
        let code = table::code(folder.path(), false).unwrap();
        let expected = format!("Some({:?})", folder.path().to_string_lossy());
        assert!(code.contains(&expected) && !code.contains("include_bytes"), "{code}");
        assert_eq!(table::BUILT, BUILT);
    }

    #[test]
    fn embedded_files_equal_the_files_read_from_the_folder() {
        let folder = built();
        let read = read(folder.path()).unwrap().unwrap();
        let table: &[(&str, &'static [u8])] = &[
            ("index.html", b"<head></head>"),
            ("assets/main-1a2b.js", b"plain"),
            ("assets/main-1a2b.js.br", b"brotli"),
        ];
        let embedded = embedded(table).unwrap().unwrap();
        assert_eq!(read.index.before, embedded.index.before);
        let name = "assets/main-1a2b.js";
        let (read, embedded) = (&read.files[name], &embedded.files[name]);
        assert_eq!((&read.plain, &read.brotli), (&embedded.plain, &embedded.brotli));
        assert!(super::embedded(&[]).is_none(), "it was not built");
    }
}
