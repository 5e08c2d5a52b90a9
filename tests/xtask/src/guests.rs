//! Guests: compiled to WebAssembly and copied to the folders in which apps expect their components.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell::{compiling, root, say, target_folder};
use crate::step::run;

/// The target of guests without WASI.
const TARGET: &str = "wasm32-unknown-unknown";

/// The target of guests with WASI, as third parties build them.
const WASI_TARGET: &str = "wasm32-wasip2";

/// The guest with WASI, which builds for no other target.
pub(crate) const FOREIGN: &str = "wattle-guest-foreign";

/// A crate of a guest, and the component file of its app.
struct Guest {
    package: &'static str,
    target: &'static str,
    /// Path of the component, relative to the root; `None` for test guests, which stay in the
    /// target folder.
    component: Option<&'static str>,
}

impl Guest {
    /// Returns the name of the shipped application that the guest belongs to.
    fn application(&self) -> Option<&'static str> {
        let file = self.component?.strip_prefix("plugins/apps/")?;
        file.split('/').next()
    }
}

const GUESTS: &[Guest] = &[
    Guest { package: "wattle-std", target: TARGET, component: Some("plugins/std/std.wasm") },
    Guest {
        package: "wattle-app-asset",
        target: TARGET,
        component: Some("plugins/apps/asset/asset.wasm"),
    },
    Guest {
        package: "wattle-app-nl2sql",
        target: TARGET,
        component: Some("plugins/apps/nl2sql/nl2sql.wasm"),
    },
    Guest {
        package: "wattle-app-reasoning",
        target: TARGET,
        component: Some("plugins/apps/reasoning/reasoning.wasm"),
    },
    Guest {
        package: "wattle-app-expense",
        target: TARGET,
        component: Some("plugins/apps/expense/expense.wasm"),
    },
    Guest {
        package: "wattle-app-travel",
        target: TARGET,
        component: Some("plugins/apps/travel/travel.wasm"),
    },
    Guest {
        package: "wattle-app-notes",
        target: TARGET,
        component: Some("plugins/apps/notes/notes.wasm"),
    },
    Guest {
        package: "wattle-tool-date",
        target: TARGET,
        component: Some("plugins/tools/date/date.wasm"),
    },
    Guest {
        package: "wattle-tool-lark",
        target: TARGET,
        component: Some("plugins/tools/lark/lark.wasm"),
    },
    Guest {
        package: "wattle-app-reference",
        target: TARGET,
        component: Some("tests/clients/graphs/reference.wasm"),
    },
    Guest { package: "wattle-guest-conformance", target: TARGET, component: None },
    Guest { package: "wattle-guest-misdeeds", target: TARGET, component: None },
    Guest { package: "wattle-guest-tools", target: TARGET, component: None },
    Guest { package: "wattle-guest-shadow", target: TARGET, component: None },
    Guest { package: FOREIGN, target: WASI_TARGET, component: None },
    // Without the SDK. It is empty for other targets.
    Guest { package: "wattle-guest-typed", target: WASI_TARGET, component: None },
];

/// Returns true if a package is built as a guest.
pub(crate) fn is_guest(package: &str) -> bool {
    GUESTS.iter().any(|guest| guest.package == package)
}

/// Returns the names of the shipped applications.
pub(crate) fn applications() -> impl Iterator<Item = &'static str> {
    GUESTS.iter().filter_map(Guest::application)
}

/// Returns the application whose guest a package is.
pub(crate) fn application(package: &str) -> Option<&'static str> {
    GUESTS.iter().find(|guest| guest.package == package)?.application()
}

/// Builds every guest.
pub(crate) fn build() -> Result<()> {
    build_some(|_| true)
}

/// Builds the guests whose packages are selected.
pub(crate) fn build_some(is_wanted: impl Fn(&str) -> bool) -> Result<()> {
    let wanted: Vec<&Guest> = GUESTS.iter().filter(|guest| is_wanted(guest.package)).collect();
    for target in [TARGET, WASI_TARGET] {
        let packages: Vec<&str> = wanted
            .iter()
            .filter(|guest| guest.target == target)
            .map(|guest| guest.package)
            .collect();
        if packages.is_empty() {
            continue;
        }
        add_target(target)?;
        let mut command = compiling(&["build"]);
        command.args(["--target", target, "--profile", "guest"]);
        command.args(packages.iter().flat_map(|package| ["--package", package]));
        run(&format!("build the guests for {target}"), &mut command)?;
    }
    for guest in wanted {
        if let Some(component) = guest.component {
            put(&built(guest), &root().join(component))?;
        }
    }
    Ok(())
}

/// Returns the file that cargo builds from the crate of a guest.
fn built(guest: &Guest) -> PathBuf {
    let file = format!("{}.wasm", guest.package.replace('-', "_"));
    target_folder().join(guest.target).join("guest").join(file)
}

/// Copies a file atomically. An equal copy is not written again, because a running host reloads a
/// changed file.
fn put(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let draft = to.with_extension("wasm.part");
    fs::write(&draft, &bytes).with_context(|| format!("cannot write {}", draft.display()))?;
    fs::rename(&draft, to).with_context(|| format!("cannot write {}", to.display()))
}

fn add_target(target: &str) -> Result<()> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = sysroot.context("cannot run `rustc`; install Rust first")?.stdout;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot).trim());
    if sysroot.join("lib/rustlib").join(target).join("lib").is_dir() {
        return Ok(());
    }
    say(&format!("adding the target {target}"));
    let added = Command::new("rustup").args(["target", "add", target]).status();
    match added {
        Ok(status) if status.success() => Ok(()),
        _ => bail!(
            "the Rust target {target} is missing and `rustup target add {target}` did not work; \
             install it with the tool that installed Rust"
        ),
    }
}
