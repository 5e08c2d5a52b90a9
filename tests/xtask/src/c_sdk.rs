//! The C SDK: its bindings and its unit tests.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::shell::{cargo, root, target_folder};
use crate::step::run;

/// The folder of the SDK, relative to the root.
const SDK: &str = "plugins/sdk/c";

/// The contract, from which the bindings are generated.
const CONTRACT: &str = "wit/wattle";

/// The sources of the unit tests, relative to the SDK. `tests/wattle_test.c` implements the
/// imports, in place of a host.
const SOURCES: [&str; 6] =
    ["tests/wattle_test.c", "tests/json_cases.c", "example/words.c", "wattle.c", "web.c", "json.c"];

/// Generates the bindings from the contract.
pub(crate) fn generate_bindings() -> Result<()> {
    let mut generator = cargo();
    generator.args(["run", "--quiet", "--bin", "wattle-bindings"]);
    run("generate the bindings of the C SDK", &mut generator)
}

/// Runs the unit tests, for the machine and not as a component.
pub(crate) fn check() -> Result<()> {
    let program = target_folder().join("c-sdk-test");
    let mut compiler = Command::new("cc");
    compiler.current_dir(root().join(SDK)).args(SOURCES).arg("-o").arg(&program);
    compiler.args(["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-I.", "-lm"]);
    // The tests count what the SDK allocates.
    compiler.arg("-Dcalloc=counted_calloc");
    run("build the tests of the C SDK", &mut compiler)?;
    run("test the C SDK", &mut Command::new(program))
}

/// Returns true if a file belongs to the SDK. The path is relative to the root.
pub(crate) fn is_source(file: &Path) -> bool {
    file.starts_with(SDK)
}

/// Returns true if the SDK must be checked after a change of this file. The path is relative to the
/// root.
pub(crate) fn depends_on(file: &Path) -> bool {
    is_source(file) || file.starts_with(CONTRACT)
}
