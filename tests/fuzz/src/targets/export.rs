//! Exports, which may come from another host. The verification of seals does not panic, and the
//! parsed header can be serialized.

use wattle_run::export::Export;

/// Parses an export and verifies it.
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
