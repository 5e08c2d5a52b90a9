//! Files of plugins. Invalid files are rejected with a message and a hint, and parsing does not
//! panic. The description of a loaded plugin is within its limits.
//!
//! The target replaces the component type of a core module by a valid one. The library that parses
//! component types recurses endlessly on some inputs, which is why the host compiles in a separate
//! process (`host/cli/tests/it/compile.rs` has such a module).

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use wasmparser::{Parser, Payload};
use wattle_graph::id::PluginName;
use wattle_run::ports::sandbox::Sandbox as _;
use wattle_sandbox::{SandboxConfig, WasmSandbox};

use crate::guest;

/// Maximum number of concurrent instances. One execution needs one.
const INSTANCES: u32 = 4;

/// Returns a sandbox that compiles in this process.
pub(crate) fn sandbox() -> &'static WasmSandbox {
    static SANDBOX: OnceLock<Arc<WasmSandbox>> = OnceLock::new();
    SANDBOX.get_or_init(|| {
        let config = SandboxConfig { max_instances: INSTANCES, ..SandboxConfig::default() };
        WasmSandbox::new(&config).expect("the sandbox starts")
    })
}

/// Loads a file as a plugin.
pub fn run(bytes: &[u8]) {
    let Some(bytes) = described(bytes) else { return };
    let name = PluginName::new("guest").expect("the name is valid");
    match crate::wait(sandbox().load(&name, Bytes::copy_from_slice(&bytes))) {
        Ok(plugin) => {
            let info = plugin.info();
            let found = info.nodes.len() + info.tools.len() + info.reducers.len();
            assert!(found + info.routes.len() <= bytes.len(), "{found} exports");
            serde_json::to_string(info).expect("a description can be written");
        }
        Err(error) => {
            assert!(!error.message.is_empty() && !error.hint.is_empty(), "{error}");
            assert_ne!(error.code, "panic", "{error}");
        }
    }
}

/// Replaces the component type of a core module by a valid one. Returns other files unchanged, and
/// `None` for a module that does not parse.
fn described(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    const HEADER_BYTES: usize = 8;
    const NAME: &str = "component-type";
    let has_description = bytes.windows(NAME.len()).any(|window| window == NAME.as_bytes());
    if !has_description || bytes.get(..HEADER_BYTES)? != MODULE {
        return Some(Cow::Borrowed(bytes));
    }
    let mut module = MODULE.to_vec();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload.ok()?;
        let is_description = matches!(&payload, Payload::CustomSection(section)
            if section.name().starts_with(NAME));
        if let Some((id, range)) = payload.as_section().filter(|_| !is_description) {
            section(id, bytes.get(range)?, &mut module);
        }
    }
    static GENUINE: OnceLock<Bytes> = OnceLock::new();
    let genuine = GENUINE.get_or_init(|| guest::component("reducer"));
    for payload in Parser::new(0).parse_all(genuine) {
        let payload = payload.expect("the guest is valid");
        if let Payload::CustomSection(custom) = &payload
            && custom.name().starts_with(NAME)
        {
            let (id, range) = payload.as_section().expect("it is a section");
            section(id, &genuine[range], &mut module);
        }
    }
    Some(Cow::Owned(module))
}

/// The header of a core module: magic number and version.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// Appends a section with its length in LEB128.
fn section(id: u8, bytes: &[u8], module: &mut Vec<u8>) {
    module.push(id);
    let mut rest = bytes.len();
    while rest >= 0x80 {
        module.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    module.push(rest as u8);
    module.extend(bytes);
}
