//! The Python SDK: installation of its packages, and its checks.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::python;
use crate::shell::{root, target_folder};
use crate::step::run;

/// The folder of the SDK, relative to the root.
const SDK: &str = "plugins/sdk/python";

/// The contract, which the SDK contains. Its conversions are tested against it.
const CONTRACT: &str = "wit/wattle";

/// The inputs and outputs that the SDKs share, which the tests read, relative to the root.
const VECTORS: &str = "plugins/sdk/vectors.json";

/// The pages whose examples run with those of the SDK, relative to the root.
const PAGES: [&str; 2] = ["host/docs/agents.md", "host/docs/first-app.md"];

/// The templates of new apps, whose unit tests run with those of the SDK, relative to the root.
const TEMPLATES: &str = "host/cli/templates/python";

/// Installs the packages of the SDK and of its checks, unless they are installed.
pub(crate) fn install() -> Result<()> {
    python::install("the packages of the Python SDK", &folder(), &environment())
}

/// Checks lints, format and types of the SDK, and runs its unit tests.
pub(crate) fn check() -> Result<()> {
    let cache = target_folder().join("python-sdk-cache");
    let check = |what: &str, arguments: &[&str]| {
        let mut command = Command::new(environment().join("bin/python"));
        command.current_dir(folder()).arg("-m").args(arguments);
        // Nothing is written into the source tree.
        command.env("PYTHONPATH", "src").env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("RUFF_CACHE_DIR", cache.join("ruff"));
        command.env("MYPY_CACHE_DIR", cache.join("mypy"));
        run(what, &mut command)
    };
    check("lint the Python SDK", &["ruff", "check", "--quiet", "."])?;
    check("check the format of the Python SDK", &["ruff", "format", "--quiet", "--check", "."])?;
    check("check the types of the Python SDK", &["mypy"])?;
    let tests =
        ["unittest", "discover", "--start-directory", "tests", "--top-level-directory", "."];
    check("test the Python SDK", &tests)
}

/// Returns true if a file belongs to the SDK. The path is relative to the root.
pub(crate) fn is_source(file: &Path) -> bool {
    file.starts_with(SDK)
}

/// Returns true if the SDK must be checked after a change of this file. The path is relative to the
/// root.
pub(crate) fn depends_on(file: &Path) -> bool {
    let mut others = [CONTRACT, TEMPLATES, VECTORS].into_iter().chain(PAGES);
    is_source(file) || others.any(|it| file.starts_with(it))
}

fn folder() -> PathBuf {
    root().join(SDK)
}

fn environment() -> PathBuf {
    target_folder().join("python-sdk")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_depends_on_its_files_on_templates_and_on_the_contract() {
        for file in [
            "plugins/sdk/python/README.md",
            "wit/wattle/llm.wit",
            "host/cli/templates/python/app/src/test_app.py",
            "plugins/sdk/vectors.json",
            PAGES[0],
            PAGES[1],
        ] {
            assert!(depends_on(Path::new(file)), "{file}");
        }
        for file in ["plugins/sdk/src/lib.rs", "wit/CHANGELOG.md"] {
            assert!(!depends_on(Path::new(file)), "{file}");
        }
    }
}
