//! Encodes a core module with a component type as a component, so that the output of `cargo build`
//! and of toolchains for `wasm32-wasip1` can be loaded directly.

use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use crate::load::rejection::{Rejection, invalid};

/// Beginning of the names of custom sections in which bindings generators store a module's
/// component type.
const COMPONENT_TYPE_SECTION: &str = "component-type";

/// Name from which modules import the version of WASI before `wasm32-wasip1`.
const UNSTABLE_WASI: &str = "wasi_unstable";

/// Encodes a core module as a component. A module for `wasm32-wasip1` gets the adapter to WASI 0.2.
pub(crate) fn encode_component(module: &[u8]) -> Result<Vec<u8>, Rejection> {
    let interface = read_interface(module)?;
    if !interface.has_component_type {
        return Err(Rejection::new(
            "core-module",
            "it is a plain WebAssembly module, not a component, and declares no plugin interface",
            "build it with the Wattle SDK: depend on `wattle-plugin`, call `export!`, and set \
             `crate-type = [\"cdylib\"]`",
        ));
    }
    if interface.imports_unstable_wasi {
        return Err(Rejection::new(
            "core-module",
            &format!("it imports `{UNSTABLE_WASI}`, which this host lacks"),
            "build it with a current toolchain for `wasm32-wasip1` or `wasm32-wasip2`",
        ));
    }
    ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|encoder| {
            if !interface.imports_wasip1 {
                return Ok(encoder);
            }
            let name = WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;
            encoder.adapter(name, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)
        })
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| {
            Rejection::new(
                "core-module",
                &format!("it cannot be converted to a component: {error:#}"),
                "build it for `wasm32-unknown-unknown`, `wasm32-wasip1` or `wasm32-wasip2`, and \
                 import only functions of its component type and of WASI",
            )
        })
}

/// Returns the digest of the adapter, on which the code of a module for `wasm32-wasip1` depends.
pub(crate) fn adapter_digest() -> blake3::Hash {
    blake3::hash(WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER)
}

/// The properties of a core module on which its conversion to a component depends.
#[derive(Default)]
struct ModuleInterface {
    has_component_type: bool,
    imports_wasip1: bool,
    imports_unstable_wasi: bool,
}

fn read_interface(module: &[u8]) -> Result<ModuleInterface, Rejection> {
    let mut found = ModuleInterface::default();
    let broken = |error: wasmparser::BinaryReaderError| invalid(&error.to_string());
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(broken)? {
            Payload::CustomSection(section) => {
                found.has_component_type |= section.name().starts_with(COMPONENT_TYPE_SECTION);
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let from = import.map_err(broken)?.module;
                    found.imports_wasip1 |= from == WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;
                    found.imports_unstable_wasi |= from == UNSTABLE_WASI;
                }
            }
            _ => {}
        }
    }
    Ok(found)
}
