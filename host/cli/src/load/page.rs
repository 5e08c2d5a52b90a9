//! The built page of an app or of the host, read into memory.
//!
//! This module checks the names of the files, and [`file`] checks the files themselves. `<file>.br`
//! and `<file>.gz` are compressed variants of `<file>`.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use wattle_run::limit;
use wattle_run::page::{IndexDocument, Page, PageFile, PageFiles};

use crate::load::app_folder::AppFolder;
use crate::load::file;
use crate::load::manifest::{FILE, Manifest, PageTable};

/// Maximum depth of folders of a page, including its root folder.
const MAX_DEPTH: u32 = 6;

/// Reads the page of an app. An archived version has no page, because users see the page of the
/// newest version.
///
/// # Errors
///
/// A message that names the file. A missing folder is not an error, see [`note`].
pub(super) fn read(app: &AppFolder<'_>) -> Result<Option<Page>, String> {
    let Some(table) = app.manifest.page.as_ref().filter(|_| !app.is_archived) else {
        return Ok(None);
    };
    check(table)?;
    let is_built = app.folder.join(&table.folder).symlink_metadata().is_ok();
    let files =
        is_built.then(|| read_files(app.folder, &table.folder, &table.entry)).transpose()?;
    Ok(Some(Page {
        title: table.title.clone(),
        examples: table.examples.clone(),
        paths: table.paths.clone(),
        files,
    }))
}

/// Returns a note for the operator if the page is not built.
pub(super) fn note(manifest: &Manifest, page: &Page) -> Option<String> {
    let table = manifest.page.as_ref().filter(|_| page.files.is_none())?;
    Some(format!(
        "the page of app `{}` was not built: there is no folder `{}`\n  hint: `cargo xtask pages` \
         builds the pages of this repository (needs Node.js and npm)",
        manifest.app.name,
        table.folder.display()
    ))
}

/// Returns the files of a page. Returns an empty list if the folder cannot be listed.
pub(super) fn page_files(folder: &Path, table: &PageTable) -> Vec<PathBuf> {
    let files = list(folder, &table.folder).unwrap_or_default();
    let folder = folder.join(&table.folder);
    files.into_iter().map(|file| folder.join(file.name)).collect()
}

fn check(table: &PageTable) -> Result<(), String> {
    let is_inside = table.folder.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_inside {
        return Err(format!(
            "{FILE}: `[page] folder` is `{}`, which is not inside the app's folder",
            table.folder.display()
        ));
    }
    if let Some(path) = table.paths.iter().find(|path| !path.starts_with('/')) {
        return Err(format!("{FILE}: `[page] paths` has `{path}`, which does not begin with `/`"));
    }
    if table.paths.is_empty() {
        return Err(format!("{FILE}: `[page] paths` is empty, so the page has no path"));
    }
    Ok(())
}

/// Reads the files of a page in a folder below `base`. `entry` is the document that a browser
/// loads.
///
/// # Errors
///
/// A message that names the file.
pub(crate) fn read_files(base: &Path, folder: &Path, entry: &str) -> Result<PageFiles, String> {
    let listed = list(base, folder)?;
    let bytes: u64 = listed.iter().map(|file| file.bytes).sum();
    if bytes > limit::PAGE_BYTES {
        return Err(format!(
            "the files of the page have {bytes} bytes, more than {}",
            limit::PAGE_BYTES
        ));
    }
    let mut contents = BTreeMap::new();
    for file in &listed {
        let path = folder.join(&file.name);
        let read = file::read(base, &path, file.bytes).map_err(|error| error.to_string())?;
        contents.insert(file.name.clone(), Bytes::from(read));
    }
    assemble(contents, entry)
}

/// Attaches compressed variants to their files, and separates the entry document from the other
/// files.
///
/// # Errors
///
/// A message that names the file.
pub(crate) fn assemble(
    contents: BTreeMap<String, Bytes>,
    entry: &str,
) -> Result<PageFiles, String> {
    let mut files: BTreeMap<String, PageFile> = BTreeMap::new();
    let (compressed, plain): (Vec<_>, Vec<_>) =
        contents.into_iter().partition(|(name, _)| compressed_variant(name).is_some());
    for (name, bytes) in plain {
        let file = PageFile::new(&name, bytes);
        files.insert(name, file);
    }
    for (name, bytes) in compressed {
        let Some((of, form)) = compressed_variant(&name) else { continue };
        let file = files.get_mut(of).ok_or_else(|| {
            format!("the page has `{name}`, but not `{of}`, of which it is the compressed variant")
        })?;
        match form {
            "br" => file.brotli = Some(bytes),
            _ => file.gzip = Some(bytes),
        }
    }
    let document = files
        .remove(entry)
        .ok_or_else(|| format!("the page has no `{entry}`, the document that browsers load"))?;
    let entry = IndexDocument::new(document.plain)
        .ok_or_else(|| format!("`{entry}` has no `<head>`, after which the host adds `<base>`"))?;
    Ok(PageFiles { index: entry, files })
}

/// Returns the name of the uncompressed file of a variant, and the suffix of the variant.
fn compressed_variant(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('.').filter(|(_, ending)| matches!(*ending, "br" | "gz"))
}

/// A file in the folder of a page.
struct PageEntry {
    /// Path relative to the page folder, with `/` as separator.
    name: String,
    bytes: u64,
}

fn list(app: &Path, folder: &Path) -> Result<Vec<PageEntry>, String> {
    let (mut listed, mut entries) = (Vec::new(), 0);
    list_below(app, folder, "", MAX_DEPTH, &mut listed, &mut entries)?;
    Ok(listed)
}

fn list_below(
    app: &Path,
    folder: &Path,
    prefix: &str,
    levels: u32,
    listed: &mut Vec<PageEntry>,
    entries: &mut usize,
) -> Result<(), String> {
    if levels == 0 {
        return Err(format!("the page has more than {MAX_DEPTH} levels of folders"));
    }
    for entry in file::list(app, folder).map_err(|error| error.to_string())? {
        let name = entry.name().filter(|name| is_plain(name)).ok_or_else(|| {
            format!(
                "`{}` cannot be served: names of a page's files consist of letters, digits, `.`, \
                 `_` and `-`, and do not begin with `.`",
                entry.path.display()
            )
        })?;
        let path = format!("{prefix}{name}");
        // Folders also count, because a page could have many folders without files.
        *entries += 1;
        if *entries > limit::PAGE_FILES {
            return Err(format!("the page has more than {} files and folders", limit::PAGE_FILES));
        }
        if entry.kind.is_dir() {
            let prefix = format!("{path}/");
            list_below(app, &folder.join(name), &prefix, levels - 1, listed, entries)?;
        } else {
            // An entry that is not a regular file is rejected when it is read.
            listed.push(PageEntry { name: path, bytes: entry.bytes });
        }
    }
    Ok(())
}

fn is_plain(name: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !name.starts_with('.') && name.bytes().all(is_known)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn table(folder: &str) -> PageTable {
        let text = format!("title = \"Test\"\nfolder = \"{folder}\"");
        toml::from_str(&text).unwrap()
    }

    fn app_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let app = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = app.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        app
    }

    fn read_page(app: &Path) -> Result<PageFiles, String> {
        let table = table("dist");
        check(&table)?;
        read_files(app, &table.folder, &table.entry)
    }

    #[test]
    fn compressed_variants_belong_to_their_file() {
        let app = app_with(&[
            ("dist/index.html", "<head></head>"),
            ("dist/assets/a.js", "long"),
            ("dist/assets/a.js.br", "b"),
            ("dist/assets/a.js.gz", "g"),
        ]);
        let page = read_page(app.path()).unwrap();
        let file = &page.files["assets/a.js"];
        assert_eq!(file.brotli.as_deref(), Some(&b"b"[..]));
        assert_eq!(file.gzip.as_deref(), Some(&b"g"[..]));
        assert_eq!(page.files.len(), 1);
    }

    #[test]
    fn problems_name_the_file() {
        let problem = |files: &[(&str, &str)]| read_page(app_with(files).path()).unwrap_err();
        let index = ("dist/index.html", "<head>");
        assert!(problem(&[("dist/a.js", "")]).contains("no `index.html`"));
        assert!(problem(&[("dist/index.html", "<p>")]).contains("no `<head>`"));
        assert!(problem(&[index, ("dist/a.js.br", "")]).contains("but not `a.js`"));
        assert!(problem(&[index, ("dist/.env", "secret")]).contains(".env"));
        assert!(problem(&[index, ("dist/a b.js", "")]).contains("cannot be served"));
        assert!(problem(&[index, ("dist/1/2/3/4/5/6/a.js", "")]).contains("levels"));
    }

    #[test]
    fn folders_outside_of_the_app_are_refused() {
        for folder in ["../dist", "/etc", "page/../../dist", "."] {
            assert!(check(&table(folder)).unwrap_err().contains("not inside"), "{folder}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_refused() {
        use std::os::unix::fs::symlink;
        let app = app_with(&[("dist/index.html", "<head>")]);
        symlink("/dev/zero", app.path().join("dist/a.js")).unwrap();
        assert!(read_page(app.path()).unwrap_err().contains("leads out"));
        let app = app_with(&[("app.toml", "")]);
        let outside = app_with(&[("index.html", "<head>")]);
        symlink(outside.path(), app.path().join("dist")).unwrap();
        assert!(read_page(app.path()).unwrap_err().contains("leads out"));
    }
}
