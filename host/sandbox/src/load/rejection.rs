//! Errors of loading a file, before the name of the plugin is added.

use wattle_graph::id::PluginName;
use wattle_run::memory_pool::PoolFull;
use wattle_run::ports::sandbox::{CODE_MEMORY, LoadError};

use crate::engine::Abi;
use crate::error::Error;
use crate::load::text;

/// Maximum length of a message, in characters. A validator may quote the bytes that it rejects.
const MAX_MESSAGE_CHARS: usize = 1_000;

/// The codes of rejections, which `LoadError` explains.
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
    CODE_MEMORY,
];

/// The reason why a file is not a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl Rejection {
    /// Creates a rejection from its code, the problem and the fix.
    pub(crate) fn new(code: &'static str, message: &str, hint: impl Into<String>) -> Self {
        Self { code, message: text::sanitize(message, MAX_MESSAGE_CHARS), hint: hint.into() }
    }

    /// Restores a rejection that another process found; `None` if this process does not know the
    /// code.
    pub(crate) fn from_parts(code: &str, message: &str, hint: &str) -> Option<Self> {
        let code = CODES.iter().find(|known| **known == code)?;
        Some(Self::new(code, message, hint))
    }

    /// Converts the rejection to the error of the named plugin.
    pub(crate) fn into_load_error(self, plugin: &PluginName) -> LoadError {
        let Self { code, message, hint } = self;
        LoadError { plugin: plugin.clone(), code, message, hint }
    }
}

/// Options with which toolchains build a component for synchronous calls. Some toolchains use the
/// asynchronous ABI by default.
const SYNCHRONOUS_SWITCHES: &str = "componentize-qjs with `sync: true` (`--sync`, with jco \
    `--backend-qjs-disable-async`), componentize-py without `async` functions";

/// Words of which each message of the validator about a disabled feature has one, such as "threads
/// must be enabled for shared memories". Messages about broken bytes have none of them.
const FEATURE_WORDS: &[&str] =
    &["enabled", "disabled", "feature", "proposal", "references required", "requires gc"];

/// Message of the parser about bytes that end too early.
const END_OF_FILE: &str = "unexpected end-of-file";

/// Returns the rejection of bytes that are broken or use a feature that the engine does not allow.
pub(crate) fn invalid(message: &str) -> Rejection {
    let hint = if FEATURE_WORDS.iter().any(|word| message.contains(word)) {
        "build it again with the Wattle SDK; threads, exceptions, garbage collection and 64-bit \
         memory are not supported"
    } else if message.contains(END_OF_FILE) {
        "build it again, or copy the file again: it was cut off"
    } else {
        "build it again with the Wattle SDK"
    };
    Rejection::new("invalid", &format!("it is not a valid component: {message}"), hint)
}

/// Returns the rejection of a component that does not compile. The parts of the asynchronous ABI
/// that are still proposals, such as blocking exports and threads, are not supported.
pub(crate) fn not_compiled(abi: Abi, error: &wasmtime::Error) -> Rejection {
    let rejection = invalid(&format!("{error:#}"));
    match abi {
        Abi::Synchronous => rejection,
        Abi::Asynchronous => Rejection {
            hint: format!(
                "{}; or build it for synchronous calls: {SYNCHRONOUS_SWITCHES}",
                rejection.hint
            ),
            ..rejection
        },
    }
}

/// Returns the rejection of a component with the asynchronous ABI on a host that cannot create the
/// engine for it.
pub(crate) fn no_async_engine(error: &Error) -> Rejection {
    Rejection::new(
        "limit",
        &format!("it uses the asynchronous ABI, and its engine cannot be created: {error}"),
        format!(
            "give the host more address space, or build it for synchronous calls: \
             {SYNCHRONOUS_SWITCHES}"
        ),
    )
}

/// Returns the rejection of a component with an exported interface that lacks a function, or that
/// has a function of another type.
pub(crate) fn missing_export(message: &str) -> Rejection {
    Rejection::new(
        "missing-export",
        &format!("an exported interface does not match the contract: {message}"),
        "build it again with the SDK of this host's version, and do not edit its WIT files",
    )
}

/// Returns the rejection of a component with an import that has no definition or another type.
pub(crate) fn unknown_import(error: &wasmtime::Error) -> Rejection {
    Rejection::new(
        "unknown-import",
        &format!("{error:#}"),
        "import only functions of `wattle:plugin@0.1`, as this host's SDK declares them",
    )
}

/// Returns the rejection of a component that exceeds a limit.
pub(crate) fn too_large(what: &str, found: u64, allowed: u64) -> Rejection {
    Rejection::new(
        "limit",
        &format!("{found} {what} are more than the limit of {allowed}"),
        "make the plugin smaller, or split it into several",
    )
}

/// Returns the rejection after a panic of a library that reads the bytes. The file is rejected, and
/// the host continues.
pub(crate) fn panicked(error: &tokio::task::JoinError) -> Rejection {
    Rejection::new(
        "panic",
        &format!("the library that reads it panicked: {error}"),
        "build it again; if the same happens, please report it together with the file",
    )
}

/// Returns the rejection of compiled code that does not fit in the memory of compiled code: with the
/// code [`CODE_MEMORY`], or with `limit` if it does not fit even if no other code is loaded.
pub(crate) fn no_code_memory(bytes: u64, PoolFull { used, max_bytes }: PoolFull) -> Rejection {
    if bytes > max_bytes {
        let message = format!(
            "its compiled code has {bytes} bytes, more than the {max_bytes} bytes that \
             `limits.code_memory` allows for all loaded components"
        );
        let hint = "raise `limits.code_memory` in wattle.toml, or make the plugin smaller";
        return Rejection::new("limit", &message, hint);
    }
    let message = format!(
        "its compiled code has {bytes} bytes, and that of the loaded components has {used} bytes \
         of the {max_bytes} bytes that `limits.code_memory` allows"
    );
    let hint = "raise `limits.code_memory` in wattle.toml, or remove plugins and apps that are not \
                needed; then restart the host, or copy the file again";
    Rejection::new(CODE_MEMORY, &message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_never_fits_exceeds_a_limit() {
        let rejected = no_code_memory(1, PoolFull { used: 100, max_bytes: 100 });
        assert_eq!(rejected.code, CODE_MEMORY);
        assert!(rejected.message.contains("has 100 bytes of the 100 bytes"), "{rejected:?}");
        assert!(rejected.hint.contains("remove plugins"), "{rejected:?}");
        let rejected = no_code_memory(101, PoolFull { used: 0, max_bytes: 100 });
        assert_eq!(rejected.code, "limit");
        assert!(rejected.hint.contains("make the plugin smaller"), "{rejected:?}");
    }
}
