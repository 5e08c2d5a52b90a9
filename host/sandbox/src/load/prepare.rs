//! Checks and compiles the bytes of a file, and reads the outline of the component, without running
//! any of its code.
//!
//! Everything that parses untrusted bytes is here, so that it can run in a separate process. The
//! host trusts the small outline as much as the compiled code.

use serde::{Deserialize, Serialize};

use crate::engine::{self, Abi};
use crate::load::contract::{self, ComponentWorld};
use crate::load::inspect::{self, InterfaceNames};
use crate::load::rejection::{self, Rejection};
use crate::load::{encode, file_kind};
use crate::typed::docs::PackageDocs;

/// Properties of a component that are read from its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outline {
    pub(crate) contract: ComponentWorld,
    pub(crate) manifest: Option<String>,
    /// The documentation of a typed component; `None` for other components, whose documentation is
    /// not used.
    #[serde(default)]
    pub(crate) docs: Option<PackageDocs>,
    pub(crate) size_bytes: u64,
    /// Files of older caches have no ABI. Hosts of that time did not run asynchronous components.
    #[serde(default)]
    pub(crate) abi: Abi,
}

/// A checked and compiled component.
pub(crate) struct Prepared {
    pub(crate) outline: Outline,
    /// Native code, in the format of wasmtime.
    pub(crate) code: Vec<u8>,
}

/// Checks and compiles a file, for the engine of its ABI. The cheap and safe stages come first.
pub(crate) fn prepare(bytes: &[u8]) -> Result<Prepared, Rejection> {
    let encoded;
    let component = match file_kind::detect(bytes)? {
        file_kind::FileKind::Component => bytes,
        file_kind::FileKind::CoreModule => {
            encoded = encode::encode_component(bytes)?;
            &encoded
        }
    };
    let manifest = inspect::manifest(bytes)?;
    let InterfaceNames { imports, exports, docs, abi } = inspect::inspect(component)?;
    let contract = contract::check(&imports, &exports)?;
    let code = engine::create_compile_engine(abi)
        .and_then(|engine| engine.precompile_component(component))
        .map_err(|error| rejection::not_compiled(abi, &error))?;
    let docs = docs.filter(|_| contract.is_typed);
    let size_bytes = component.len() as u64;
    Ok(Prepared { outline: Outline { contract, manifest, docs, size_bytes, abi }, code })
}
