//! Encodes a core module with a component type as a component, so that the output of `cargo build`
//! can be used as it is.

use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;

use crate::load::rejection::{Rejection, invalid};

/// Beginning of the names of custom sections in which bindings generators store a module's
/// component type.
const COMPONENT_TYPE_SECTION: &str = "component-type";

/// Encodes a core module as a component.
pub(crate) fn encode_component(module: &[u8]) -> Result<Vec<u8>, Rejection> {
    if !has_component_type(module)? {
        return Err(Rejection::new(
            "core-module",
            "it is a plain WebAssembly module, not a component, and declares no plugin interface",
            "build it with the Wattle SDK: depend on `wattle-plugin`, call `export!`, and set \
             `crate-type = [\"cdylib\"]`",
        ));
    }
    ComponentEncoder::default()
        .validate(true)
        .module(module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| {
            Rejection::new(
                "core-module",
                &format!("it cannot be made a component: {error:#}"),
                "build it for `wasm32-unknown-unknown`; modules for `wasm32-wasip1` import \
                 functions that this host does not have",
            )
        })
}

fn has_component_type(module: &[u8]) -> Result<bool, Rejection> {
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.map_err(|error| invalid(&error.to_string()))?;
        if let Payload::CustomSection(section) = payload
            && section.name().starts_with(COMPONENT_TYPE_SECTION)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
