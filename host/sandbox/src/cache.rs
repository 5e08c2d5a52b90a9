//! Compiled code on disk, so that a start does not compile what an earlier one did.
//!
//! A file holds native code, which is run as it is. So the directory is closed to other users, a
//! file's name depends on everything that the code depends on (the component, wasmtime, its
//! settings, the processor), and its content is preceded by a digest that must match.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::warn;
use wasmtime::Engine;
use wasmtime::component::Component;
use wattle_graph::id::Digest;

use crate::error::Error;

/// Set anew when the layout of the files changes.
const LAYOUT: &str = "wattle-code-1";

/// Length of the digest before the code.
const DIGEST_BYTES: usize = 32;

/// Makes names of temporary files unique in this process.
static TEMPORARY: AtomicU64 = AtomicU64::new(0);

/// A directory of compiled code.
pub(crate) struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// Opens a directory, creating it if needed, and closes it to other users.
    pub(crate) fn open(directory: PathBuf) -> Result<Self, Error> {
        let opened = fs::create_dir_all(&directory).and_then(|()| close_to_others(&directory));
        match opened {
            Ok(()) => Ok(Self { directory }),
            Err(source) => Err(Error::CacheDir { path: directory, source }),
        }
    }

    /// The code of a component, if there is any that is whole.
    pub(crate) fn get(&self, engine: &Engine, component: Digest) -> Option<Component> {
        let path = self.path(engine, component);
        let file = match fs::read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                warn!(path = %path.display(), %error, "cannot read compiled code");
                return None;
            }
        };
        let found = whole(&file).and_then(|code| deserialize(engine, code));
        if found.is_none() {
            warn!(path = %path.display(), "compiled code is broken and is compiled anew");
        }
        found
    }

    /// Keeps the code of a component. Failing to is no fault: it is compiled again next time.
    pub(crate) fn put(&self, engine: &Engine, component: Digest, code: &Component) {
        let path = self.path(engine, component);
        let kept =
            code.serialize().map_err(io::Error::other).and_then(|code| self.write(&path, &code));
        if let Err(error) = kept {
            warn!(path = %path.display(), %error, "cannot keep compiled code");
        }
    }

    /// Writes beside and renames, so that nobody ever sees half a file.
    fn write(&self, path: &Path, code: &[u8]) -> io::Result<()> {
        let number = TEMPORARY.fetch_add(1, Ordering::Relaxed);
        let temporary = self.directory.join(format!(".{}-{number}.tmp", std::process::id()));
        let mut file = Vec::with_capacity(DIGEST_BYTES + code.len());
        file.extend_from_slice(Digest::of(code).as_bytes());
        file.extend_from_slice(code);
        let written = fs::write(&temporary, file).and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            // The error that matters is the first one; a file left behind does no harm.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    fn path(&self, engine: &Engine, component: Digest) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let settings = hasher.finish();
        let key = format!("{LAYOUT}:{settings:016x}:{}", component.to_hex());
        self.directory.join(format!("{}.cwasm", Digest::of(key.as_bytes()).to_hex()))
    }
}

/// The code in a file, if its digest matches.
fn whole(file: &[u8]) -> Option<&[u8]> {
    let (digest, code) = file.split_at_checked(DIGEST_BYTES)?;
    (Digest::of(code).as_bytes() == digest).then_some(code)
}

#[expect(unsafe_code, reason = "loading compiled code is unsafe in wasmtime's interface")]
fn deserialize(engine: &Engine, code: &[u8]) -> Option<Component> {
    // SAFETY: the bytes were written by `Cache::write` from `Component::serialize`: they lie in a
    // directory that only this user can write, and their digest matches. wasmtime itself checks
    // its version and the engine's settings.
    unsafe { Component::deserialize(engine, code) }.ok()
}

#[cfg(unix)]
fn close_to_others(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn close_to_others(_directory: &Path) -> io::Result<()> {
    Ok(())
}
