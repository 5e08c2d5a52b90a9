//! From the bytes of a file to compiled code, with an outline of the component, without running it.
//!
//! Everything that parses untrusted bytes is here, so that it can run in a separate process. The
//! result is small, and as trusted as the code.

use serde::{Deserialize, Serialize};
use wasmtime::Engine;

use crate::load::contract::{self, Contract};
use crate::load::fault::{self, Fault};
use crate::load::survey::{self, Survey};
use crate::load::{encode, kind};

/// Properties of a component that are read from its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outline {
    pub(crate) contract: Contract,
    pub(crate) manifest: Option<String>,
    pub(crate) size_bytes: u64,
}

/// A checked and compiled component.
pub(crate) struct Prepared {
    pub(crate) outline: Outline,
    /// Native code, in the format of wasmtime.
    pub(crate) code: Vec<u8>,
}

/// Checks and compiles a file. The cheap and safe stages come first.
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
