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

/// The name of the world, with which names of the bindings begin.
const NAME: &str = "plugin";

/// The world of a component in C, with every import and every export of the contract. A plugin that
/// has no reducers describes an empty list of them, and so for the other exports. The contract has
/// no such world: a toolchain without an SDK would have to implement every export.
const WORLD: &str = "
    package wattle:c;

    world plugin {
        include wattle:plugin/imports@0.1.0;
        export wattle:plugin/node@0.1.0;
        export wattle:plugin/tool@0.1.0;
        export wattle:plugin/reducer@0.1.0;
        export wattle:plugin/web@0.1.0;
    }
";

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
    resolve.push_path(root().join(CONTRACT))?;
    let package = resolve.push_str("component.wit", WORLD)?;
    let world = resolve.select_world(&[package], Some(NAME))?;
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
