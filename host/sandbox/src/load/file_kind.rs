//! Detection of the kind of a file, from its first bytes.

use crate::load::rejection::{Rejection, too_large};

/// Maximum size of a plugin file, in bytes. A component of Python has 18 MiB.
pub(crate) const MAX_FILE_BYTES: usize = 64 << 20;

/// Length of the magic number and version of a WebAssembly file, in bytes.
const HEADER_BYTES: usize = 8;

const MAGIC: &[u8] = b"\0asm";
const CORE_VERSION: &[u8] = &[1, 0, 0, 0];
const COMPONENT_VERSION: &[u8] = &[13, 0, 1, 0];

/// First bytes of native executables and libraries: Linux, Windows, macOS.
const NATIVE_MAGICS: &[&[u8]] =
    &[b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"!<arch>"];

/// The kind of a WebAssembly file, according to its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// A component.
    Component,
    /// A core module.
    CoreModule,
}

/// Returns the kind of a WebAssembly file, or the rejection of a file that is too large or is not
/// WebAssembly.
pub(crate) fn detect(bytes: &[u8]) -> Result<FileKind, Rejection> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(too_large("bytes", bytes.len() as u64, MAX_FILE_BYTES as u64));
    }
    if !bytes.starts_with(MAGIC) {
        return Err(not_wasm(bytes));
    }
    match bytes.get(MAGIC.len()..HEADER_BYTES) {
        Some(CORE_VERSION) => Ok(FileKind::CoreModule),
        Some(COMPONENT_VERSION) => Ok(FileKind::Component),
        Some(_) => Err(Rejection::new(
            "not-wasm",
            "it has a version of WebAssembly that this host does not support",
            "build it with a current toolchain for `wasm32-unknown-unknown`",
        )),
        None => Err(Rejection::new(
            "not-wasm",
            &format!("it ends after {} bytes", bytes.len()),
            "copy the file again: it was cut off",
        )),
    }
}

fn not_wasm(bytes: &[u8]) -> Rejection {
    let (message, hint) = if bytes.is_empty() {
        ("it is empty", "copy the file again")
    } else if MAGIC.starts_with(bytes) {
        ("it ends inside the first four bytes", "copy the file again: it was cut off")
    } else if NATIVE_MAGICS.iter().any(|magic| bytes.starts_with(magic)) {
        (
            "it is a native library, not WebAssembly",
            "build the plugin with `--target wasm32-unknown-unknown`",
        )
    } else if std::str::from_utf8(bytes).is_ok() {
        (
            "it is a text file, not WebAssembly",
            "put the built `.wasm` file here, not its source or its text form",
        )
    } else {
        (
            "it does not begin with the header of a WebAssembly file",
            "put the `.wasm` file of the build here, not compressed and not in an archive",
        )
    };
    Rejection::new("not-wasm", message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: &[u8]) -> String {
        let rejection = detect(bytes).unwrap_err();
        assert_eq!(rejection.code, "not-wasm");
        rejection.message
    }

    #[test]
    fn files_that_are_not_wasm_are_rejected_with_their_kind() {
        assert!(message(b"").contains("empty"));
        assert!(message(b"\0as").contains("four bytes"));
        assert!(message(b"\0asm\x01").contains("after 5 bytes"));
        assert!(message(b"\0asm\x02\0\0\0").contains("version"));
        assert!(message(b"\x7fELF\x02\x01").contains("native"));
        assert!(message(b"(module)").contains("text"));
        assert!(message(b"\x1f\x8b\x08\xff").contains("begin with"));
    }

    #[test]
    fn wasm_files_are_recognized() {
        assert_eq!(detect(b"\0asm\x01\0\0\0").unwrap(), FileKind::CoreModule);
        assert_eq!(detect(b"\0asm\x0d\0\x01\0").unwrap(), FileKind::Component);
    }
}
