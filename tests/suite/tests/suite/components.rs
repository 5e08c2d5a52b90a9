//! The files of the components that operators install, as `cargo xtask guests` builds them.

use wasmparser::{Parser, Payload};
use wattle_suite::guests;

/// Maximum bytes of an application. A host compiles a component before its first use, and keeps some
/// four times as much code in memory.
const APP_BYTES: usize = 2 << 20;

/// Maximum bytes of another plugin.
const PLUGIN_BYTES: usize = 640 << 10;

/// The packages of the components, with the maximum bytes of their files.
const PACKAGES: [(&str, usize); 9] = [
    ("wattle-app-asset", APP_BYTES),
    ("wattle-app-expense", APP_BYTES),
    ("wattle-app-nl2sql", APP_BYTES),
    ("wattle-app-notes", APP_BYTES),
    ("wattle-app-reasoning", APP_BYTES),
    ("wattle-app-travel", APP_BYTES),
    ("wattle-std", PLUGIN_BYTES),
    ("wattle-tool-date", PLUGIN_BYTES),
    ("wattle-tool-lark", PLUGIN_BYTES),
];

#[test]
fn components_are_small() {
    for (package, limit) in PACKAGES {
        let bytes = guests::bytes(package).len();
        assert!(bytes < limit, "{package} has {bytes} bytes, and must have less than {limit}");
    }
}

/// The names of the functions in `nl2sql.wasm` are a sixth of the file.
#[test]
fn components_have_no_names_of_functions() {
    for (package, _) in PACKAGES {
        let bytes = guests::bytes(package);
        let has_names = Parser::new(0).parse_all(&bytes).any(|payload| {
            matches!(payload.unwrap(), Payload::CustomSection(section) if section.name() == "name")
        });
        assert!(!has_names, "{package} is not stripped");
    }
}
