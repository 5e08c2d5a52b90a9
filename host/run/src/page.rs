//! The page of an app: the files that a browser loads, held in memory as they were when the app was
//! loaded.
//!
//! Requests are served from a map, not from the file system: no path can leave the folder, and a
//! partly written build is not served.

use std::collections::BTreeMap;

use bytes::Bytes;
use wattle_graph::id::Digest;

/// Folder of files whose names contain a digest of their content. Browsers may cache them forever.
pub const IMMUTABLE_PREFIX: &str = "assets/";

/// The page of an app.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Title, for lists of apps.
    pub title: String,
    /// Example inputs for new users.
    pub examples: Vec<String>,
    /// Patterns of the paths at which the host serves the index document, such as `/` and
    /// `/session/{id}`.
    pub paths: Vec<String>,
    /// The built files; `None` if the page was not built.
    pub files: Option<PageFiles>,
}

/// The built files of a page.
#[derive(Clone, Debug)]
pub struct PageFiles {
    /// The HTML document that the host serves at the paths of the page.
    pub index: IndexDocument,
    /// All other files by their paths below the folder, with `/` between segments.
    pub files: BTreeMap<String, PageFile>,
}

/// An HTML document in two parts. The host inserts the base of all relative URLs between them,
/// since only a request shows under which path the app is reached.
#[derive(Clone, Debug)]
pub struct IndexDocument {
    /// Everything up to and including `<head>`.
    pub before: Bytes,
    /// Everything after `<head>`.
    pub after: Bytes,
}

/// One file of a page, with compressed forms.
#[derive(Clone, Debug)]
pub struct PageFile {
    /// Media type, for the header `content-type`.
    pub media_type: &'static str,
    /// Digest of `plain`.
    pub digest: Digest,
    /// Uncompressed bytes.
    pub plain: Bytes,
    /// Bytes compressed with Brotli (RFC 7932).
    pub brotli: Option<Bytes>,
    /// Bytes compressed with gzip (RFC 1952).
    pub gzip: Option<Bytes>,
}

impl PageFiles {
    /// Returns a file and its name by its path below the folder, such as `assets/main-1a2b.js`.
    pub fn file(&self, path: &str) -> Option<(&str, &PageFile)> {
        self.files.get_key_value(path).map(|(name, file)| (name.as_str(), file))
    }
}

impl IndexDocument {
    /// Splits a document after its `<head>` tag. Returns `None` if the document has no such tag.
    pub fn new(html: Bytes) -> Option<Self> {
        let lower = html.to_ascii_lowercase();
        let start = find(&lower, b"<head>")? + b"<head>".len();
        Some(Self { before: html.slice(..start), after: html.slice(start..) })
    }
}

impl PageFile {
    /// Creates a file without compressed forms.
    pub fn new(path: &str, plain: Bytes) -> Self {
        let (media_type, digest) = (media_type(path), Digest::of(&plain));
        Self { media_type, digest, plain, brotli: None, gzip: None }
    }
}

impl Page {
    /// Returns a file by its path below the root of the app, such as `/assets/main-1a2b.js`.
    pub fn file(&self, path: &str) -> Option<(&str, &PageFile)> {
        self.files.as_ref()?.file(path.strip_prefix('/')?)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}

/// Returns the media type for the extension of a file. An unknown extension gets a type that
/// browsers do not display, since the host disables content sniffing.
fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_split_after_its_head_tag() {
        let html = Bytes::from_static(b"<!doctype html><html><HEAD><title>x</title></HEAD></html>");
        let entry = IndexDocument::new(html).unwrap();
        assert_eq!(&entry.before[..], b"<!doctype html><html><HEAD>");
        assert!(entry.after.starts_with(b"<title>"));
        assert!(IndexDocument::new(Bytes::from_static(b"<header></header>")).is_none());
    }

    #[test]
    fn only_the_exact_path_finds_a_file_of_a_page() {
        let file = PageFile::new("assets/a.js", Bytes::from_static(b"1"));
        assert_eq!(file.media_type, "text/javascript; charset=utf-8");
        let index = IndexDocument::new(Bytes::from_static(b"<head>")).unwrap();
        let files = BTreeMap::from([("assets/a.js".to_owned(), file)]);
        let page = Page { files: Some(PageFiles { index, files }), ..Page::default() };
        assert!(page.file("/assets/a.js").is_some());
        for path in ["assets/a.js", "//assets/a.js", "/assets/../assets/a.js", "/assets/", "/"] {
            assert!(page.file(path).is_none(), "{path}");
        }
        assert!(Page::default().file("/assets/a.js").is_none());
    }
}
