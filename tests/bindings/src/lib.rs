//! Generates the bindings of the C SDK from the contract. `cargo xtask bindings` writes them, and a
//! test compares the written ones with the contract.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;

/// The contract, relative to the root.
const CONTRACT: &str = "wit/wattle";

/// The folder of the bindings, relative to the root.
const FOLDER: &str = "plugins/sdk/c/bindings";

/// The world of the contract that has nodes and tools.
const WORLD: &str = "plugin";

/// Returns the folder of the bindings.
pub fn folder() -> PathBuf {
    root().join(FOLDER)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Generates the bindings: a header, its source, and an object file with the component type. Returns
/// them by the names of the files.
///
/// # Errors
///
/// If the contract cannot be read.
pub fn generate() -> Result<BTreeMap<String, Vec<u8>>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(root().join(CONTRACT))?;
    let world = resolve.select_world(&[package], Some(WORLD))?;
    let mut files = Files::default();
    wit_bindgen_c::Opts::default().build().generate(&mut resolve, world, &mut files)?;
    Ok(files.iter().map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn written_bindings_are_those_of_the_contract() {
        let generated = generate().unwrap();
        let names: Vec<&str> = generated.keys().map(String::as_str).collect();
        assert_eq!(names, ["plugin.c", "plugin.h", "plugin_component_type.o"]);
        for (name, bytes) in generated {
            let written = fs::read(folder().join(&name)).unwrap_or_default();
            assert!(
                written == bytes,
                "{FOLDER}/{name} is not that of the contract; run `cargo xtask bindings`"
            );
        }
    }
}
