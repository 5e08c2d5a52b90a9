//! The WebAssembly guests that `cargo xtask guests` builds.

use std::path::{Path, PathBuf};

use bytes::Bytes;

/// Returns the root folder of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// Returns the file of a guest crate, such as `wattle-guest-misdeeds`.
#[expect(clippy::disallowed_methods, reason = "cargo reads its target folder from this variable")]
pub fn path(package: &str) -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let file = format!("{}.wasm", package.replace('-', "_"));
    let wasi = target.join("wasm32-wasip2/guest").join(&file);
    if wasi.exists() { wasi } else { target.join("wasm32-unknown-unknown/guest").join(file) }
}

/// Reads the file of a guest crate.
///
/// # Panics
///
/// If it is not built: run `cargo xtask guests`, or `cargo xtask test`, which builds it first.
pub fn bytes(package: &str) -> Bytes {
    let path = path(package);
    let read = std::fs::read(&path);
    assert!(read.is_ok(), "{} is missing; run `cargo xtask guests` first", path.display());
    read.map(Bytes::from).unwrap_or_default()
}
