//! An export, a file from another host: its seals are checked without harm, and what is read of it
//! can be written.

use wattle_run::export::Export;

/// Reads an export.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Export::read(text) {
        Ok(export) => {
            if let Err(error) = export.verify() {
                assert!(!error.to_string().is_empty());
            }
            serde_json::to_string(&export.header).expect("a header can be written");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
