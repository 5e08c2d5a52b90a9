//! One target per file. The documentation of each file states its properties. Every target also
//! checks that the host neither panics nor hangs.

pub mod app;
pub mod blob;
pub mod cel;
pub mod code;
pub mod component;
pub mod events;
pub mod export;
pub mod frame;
pub mod graph;
pub mod guard;
pub mod kept;
pub mod mcp;
pub mod memory;
pub mod native;
pub mod provider;
pub mod request;
pub mod schema;
pub mod script;
pub mod session;
pub mod session_http;
pub mod sql;
pub mod state;
pub mod store;
pub mod stream;
pub mod structured;
pub mod token;
pub mod typed;
pub mod url;
pub mod wasi_http;
pub mod wit;

use std::path::Path;

use tempfile::TempDir;

/// Size of one edit: four bytes for the offset, one that is combined with the byte there by XOR.
const EDIT_BYTES: usize = 5;

/// Maximum number of edits. A torn page has more, but they are all alike.
const EDITS: usize = 64;

/// Splits a text input into its first line and the rest.
fn lines(bytes: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.split_once('\n').unwrap_or((text, "")))
}

/// Splits a line of an input into the name and the value of a header.
fn header_field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

/// Returns an intact file with the edits of an input.
fn edited(sound: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut file = sound.to_vec();
    for edit in edits.chunks_exact(EDIT_BYTES).take(EDITS) {
        let place = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize;
        let length = file.len();
        file[place % length] ^= edit[4];
    }
    file
}

/// Creates a folder for one execution, in memory if the system has a file system in memory.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    folder.expect("there is room")
}
