//! Guests: compiled to WebAssembly, and put where apps expect their components.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::steps::{cargo, root, run, say};

/// First-party guests need nothing but this target.
const TARGET: &str = "wasm32-unknown-unknown";

/// A guest crate, and the file its app folder wants.
struct Guest {
    package: &'static str,
    /// Where a copy goes, from the root; `None` for test guests, which stay under `target`.
    component: Option<&'static str>,
}

const GUESTS: &[Guest] = &[
    Guest { package: "wattle-app-asset", component: Some("plugins/apps/asset/asset.wasm") },
    Guest { package: "wattle-guest-misdeeds", component: None },
];

/// Builds every guest.
pub(crate) fn build() -> Result<()> {
    add_target()?;
    let mut command = cargo();
    command.args(["build", "--target", TARGET, "--profile", "guest"]);
    for guest in GUESTS {
        command.args(["--package", guest.package]);
    }
    run("build the guests", &mut command)?;
    for guest in GUESTS {
        if let Some(component) = guest.component {
            put(&built(guest.package), &root().join(component))?;
        }
    }
    Ok(())
}

/// The file cargo makes of a guest crate.
fn built(package: &str) -> PathBuf {
    target_folder().join(TARGET).join("guest").join(format!("{}.wasm", package.replace('-', "_")))
}

/// Cargo's target folder, as this process was told.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Copies a file unless the copy is the same already: an unchanged file is not loaded anew by a
/// running host. The copy appears whole or not at all.
fn put(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let draft = to.with_extension("wasm.part");
    fs::write(&draft, &bytes).with_context(|| format!("cannot write {}", draft.display()))?;
    fs::rename(&draft, to).with_context(|| format!("cannot write {}", to.display()))
}

fn add_target() -> Result<()> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = sysroot.context("cannot run `rustc`; install Rust first")?.stdout;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&sysroot).trim());
    if sysroot.join("lib/rustlib").join(TARGET).join("lib").is_dir() {
        return Ok(());
    }
    say(&format!("adding the target {TARGET}"));
    let added = Command::new("rustup").args(["target", "add", TARGET]).status();
    match added {
        Ok(status) if status.success() => Ok(()),
        _ => bail!(
            "the Rust target {TARGET} is missing and `rustup target add {TARGET}` did not work; \
             install it with the tool that installed Rust"
        ),
    }
}
