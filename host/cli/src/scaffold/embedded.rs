//! The files that the build script has put into the binary: their paths and contents.

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Returns the files of a folder, with their paths relative to the folder.
pub(super) fn files_in(folder: String) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    FILES.iter().filter_map(move |(path, content)| {
        let path = path.strip_prefix(folder.as_str())?.strip_prefix('/')?;
        Some((path, *content))
    })
}
