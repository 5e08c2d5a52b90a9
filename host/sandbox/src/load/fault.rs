//! What is wrong with a file, before it has a plugin's name.

use wattle_graph::id::PluginName;
use wattle_run::ports::sandbox::LoadError;

use crate::load::text;

/// Longest message: validators may quote what they refuse.
const MESSAGE_CHARS: usize = 1_000;

/// The codes of faults, which `LoadError` explains.
const CODES: &[&str] = &[
    "not-wasm",
    "core-module",
    "wit-version",
    "missing-export",
    "unknown-import",
    "invalid",
    "describe",
    "limit",
    "panic",
];

/// Why a file is no plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Fault {
    /// A fault with its code, what is wrong, and what to do.
    pub(crate) fn new(code: &'static str, message: &str, hint: impl Into<String>) -> Self {
        Self { code, message: text::clean(message, MESSAGE_CHARS), hint: hint.into() }
    }

    /// A fault that another process found; `None` if its code is not one that this one knows.
    pub(crate) fn told(code: &str, message: &str, hint: &str) -> Option<Self> {
        let code = CODES.iter().find(|known| **known == code)?;
        Some(Self::new(code, message, hint))
    }

    /// The same for a plugin.
    pub(crate) fn of(self, plugin: &PluginName) -> LoadError {
        let Self { code, message, hint } = self;
        LoadError { plugin: plugin.clone(), code, message, hint }
    }
}

/// The bytes are broken or use something that the engine does not allow.
pub(crate) fn invalid(message: &str) -> Fault {
    Fault::new(
        "invalid",
        &format!("it is not a valid component: {message}"),
        "build it again with the Wattle SDK; threads, exceptions, garbage collection, 64-bit \
         memory and asynchronous exports are not supported",
    )
}

/// An export of the contract lacks a function or has another type.
pub(crate) fn missing(message: &str) -> Fault {
    Fault::new(
        "missing-export",
        &format!("an exported interface is not what the contract says: {message}"),
        "build it again with the SDK of this host's version, and do not edit its WIT files",
    )
}

/// An import has no definition, or another type.
pub(crate) fn unlinked(error: &wasmtime::Error) -> Fault {
    Fault::new(
        "unknown-import",
        &format!("{error:#}"),
        "import only functions of `wattle:plugin@0.1`, as this host's SDK declares them",
    )
}

/// It is too large in some way.
pub(crate) fn too_large(what: &str, found: u64, allowed: u64) -> Fault {
    Fault::new(
        "limit",
        &format!("{found} {what} are more than the limit of {allowed}"),
        "make the plugin smaller, or split it into several",
    )
}

/// A library that reads the bytes panicked: the file is refused, and the host goes on.
pub(crate) fn panicked(error: &tokio::task::JoinError) -> Fault {
    Fault::new(
        "panic",
        &format!("the library that reads it panicked: {error}"),
        "build it again; if the same happens, please report it together with the file",
    )
}
