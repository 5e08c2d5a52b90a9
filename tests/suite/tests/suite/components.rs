//! The files of the components that operators install, as `cargo xtask guests` builds them.

use wasmparser::{Parser, Payload};
use wattle_suite::guests;

/// The packages of the components.
const PACKAGES: [&str; 9] = [
    "wattle-app-asset",
    "wattle-app-expense",
    "wattle-app-nl2sql",
    "wattle-app-notes",
    "wattle-app-reasoning",
    "wattle-app-travel",
    "wattle-std",
    "wattle-tool-date",
    "wattle-tool-lark",
];

/// The names of the functions in `nl2sql.wasm` are a sixth of the file.
#[test]
fn components_have_no_names_of_functions() {
    for package in PACKAGES {
        let bytes = guests::bytes(package);
        let has_names = Parser::new(0).parse_all(&bytes).any(|payload| {
            matches!(payload.unwrap(), Payload::CustomSection(section) if section.name() == "name")
        });
        assert!(!has_names, "{package} is not stripped");
    }
}
