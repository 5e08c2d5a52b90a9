//! From the bytes of a file to compiled code, with what is known of the component without running
//! it.
//!
//! All that takes hostile bytes apart is here, so that it can happen in a process of its own. What
//! comes out is small, and as trusted as the code.

use serde::{Deserialize, Serialize};
use wasmtime::Engine;

use crate::load::contract::{self, Contract};
use crate::load::fault::{self, Fault};
use crate::load::survey::{self, Survey};
use crate::load::{encode, kind};

/// What is known of a component from its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outline {
    pub(crate) contract: Contract,
    pub(crate) manifest: Option<String>,
    pub(crate) size_bytes: u64,
}

/// A component that was taken apart and compiled.
pub(crate) struct Prepared {
    pub(crate) outline: Outline,
    /// Native code, as wasmtime writes it.
    pub(crate) code: Vec<u8>,
}

/// Checks and compiles a file. The stages are the cheap and safe ones first.
pub(crate) fn prepare(engine: &Engine, bytes: &[u8]) -> Result<Prepared, Fault> {
    let encoded;
    let component = match kind::of(bytes)? {
        kind::Kind::Component => bytes,
        kind::Kind::CoreModule => {
            encoded = encode::component(bytes)?;
            &encoded
        }
    };
    let manifest = survey::manifest(bytes)?;
    let Survey { imports, exports } = survey::survey(component)?;
    let contract = contract::check(&imports, &exports)?;
    let code = engine
        .precompile_component(component)
        .map_err(|error| fault::invalid(&format!("{error:#}")))?;
    let size_bytes = component.len() as u64;
    Ok(Prepared { outline: Outline { contract, manifest, size_bytes }, code })
}
