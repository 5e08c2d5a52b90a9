//! Cache of compiled code on disk, so that a restart does not compile components again.
//!
//! A file contains native code that the host executes. Other users therefore have no access to the
//! directory, and a file begins with a keyed digest of its name and content. The key is a secret of
//! the host. The name depends on everything that the code depends on: the component, wasmtime, its
//! settings, the processor and the adapter of modules for `wasm32-wasip1`. If a file was changed,
//! was written without the key, or has the content of another file, the host does not execute the
//! file. Instead, the host logs a warning and compiles the component again.

pub(crate) mod file;

use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use tracing::warn;
use wasmtime::Engine;
use wasmtime::component::Component;
use wattle_graph::id::Digest;
use wattle_run::memory_pool::{MemoryPool, Occupied};

use crate::code_cache::file::{CacheFile, DIGEST_BYTES};
use crate::config::{CACHE_KEY_BYTES, CodeCacheConfig};
use crate::engines::Engines;
use crate::error::Error;
use crate::load::prepare::Outline;
use crate::load::{Rejection, code_memory, encode, rejection};

/// Version of the file format.
const FORMAT_VERSION: &str = "wattle-code-3";

/// Size of the field after the digest, which has the length of the outline, in bytes.
const LENGTH_BYTES: usize = size_of::<u32>();

/// Size of the two fields before the outline, in bytes.
const HEAD_BYTES: usize = DIGEST_BYTES + LENGTH_BYTES;

/// Maximum size of a file, in bytes. Code is some four times as large as its component.
const MAX_FILE_BYTES: u64 = 512 << 20;

/// The compiled code of a component in memory, before it is linked.
pub(crate) struct LoadedCode {
    pub(crate) outline: Outline,
    pub(crate) component: Component,
    /// The memory of the code.
    pub(crate) memory: Occupied,
}

/// A directory of compiled code.
pub(crate) struct CodeCache {
    directory: PathBuf,
    key: [u8; CACHE_KEY_BYTES],
}

impl CodeCache {
    /// Opens a directory and denies other users access to it. Creates the directory if needed.
    pub(crate) fn open(config: CodeCacheConfig) -> Result<Self, Error> {
        let CodeCacheConfig { directory, key } = config;
        let opened = fs::create_dir_all(&directory).and_then(|()| restrict_permissions(&directory));
        match opened {
            Ok(()) => Ok(Self { directory, key }),
            Err(source) => Err(Error::CacheDir { path: directory, source }),
        }
    }

    /// Returns the compiled code of a component, if the cache has a file for the component that a
    /// host with the same key wrote.
    ///
    /// # Errors
    ///
    /// The rejection of code that does not fit in `memory`. The code is not read from its file.
    pub(crate) fn get(
        &self,
        engines: &Engines,
        memory: &MemoryPool,
        component: Digest,
    ) -> Result<Option<LoadedCode>, Rejection> {
        let name = self.name(engines, component);
        let path = self.path(&name);
        let opened = match open(&path) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                warn!(path = %path.display(), %error, "cannot read compiled code");
                return Ok(None);
            }
        };
        let memory = code_memory::reserve(memory, opened.code_bytes())?;
        let found = self.read(engines, &name, &path, opened);
        Ok(found.map(|(outline, component)| LoadedCode { outline, component, memory }))
    }

    /// Reads a file and loads its code, if a host with the same key wrote the file.
    fn read(
        &self,
        engines: &Engines,
        name: &str,
        path: &Path,
        opened: OpenedFile,
    ) -> Option<(Outline, Component)> {
        let file = match opened.read() {
            Ok(file) => file,
            Err(error) => {
                warn!(path = %path.display(), %error, "cannot read compiled code");
                return None;
            }
        };
        let Some(content) = self.verified(name, &file) else {
            warn!(
                path = %path.display(),
                "compiled code was changed, or written by another host; it is not run, and the \
                 component is compiled again"
            );
            return None;
        };
        let found = split_content(content).and_then(|(outline, code)| {
            // If the engine cannot be created, the error is returned after the component is
            // compiled.
            let engine = engines.get(outline.abi).ok()?;
            Some((outline, deserialize(engine.engine(), code)?))
        });
        if found.is_none() {
            warn!(
                path = %path.display(),
                "cannot load compiled code from the cache; the component is compiled again"
            );
        }
        found
    }

    /// Returns the file of a component, to write it.
    pub(crate) fn file(&self, engines: &Engines, component: Digest) -> CacheFile {
        let name = self.name(engines, component);
        CacheFile::new(self.path(&name), self.hasher(&name))
    }

    /// Returns the content of a file if the file begins with the keyed digest of its name and
    /// content. Only the host has the key, so only it can have written such a file. Compares the
    /// digests in constant time.
    fn verified<'a>(&self, name: &str, file: &'a [u8]) -> Option<&'a [u8]> {
        let (digest, content) = file.split_first_chunk::<DIGEST_BYTES>()?;
        (self.hasher(name).update(content).finalize() == *digest).then_some(content)
    }

    /// Returns the hasher of a file's digest with the key and the name.
    fn hasher(&self, name: &str) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(name.as_bytes());
        hasher
    }

    /// Returns the name of a component's file. The name also depends on the key, so that hosts with
    /// different keys that share a directory do not take each other's files for changed files. The
    /// name has the settings of the engine for the synchronous ABI only: those of the other engine
    /// differ only in the support of asynchronous functions.
    fn name(&self, engines: &Engines, component: Digest) -> String {
        let mut hasher = DefaultHasher::new();
        engines.synchronous().engine().precompile_compatibility_hash().hash(&mut hasher);
        let settings = hasher.finish();
        let adapter = encode::adapter_digest().to_hex();
        let what = format!("{FORMAT_VERSION}:{settings:016x}:{adapter}:{}", component.to_hex());
        blake3::keyed_hash(&self.key, what.as_bytes()).to_hex().to_string()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.cwasm"))
    }
}

/// A file of the directory whose head was read.
struct OpenedFile {
    file: File,
    bytes: u64,
    digest: [u8; DIGEST_BYTES],
    outline_length: [u8; LENGTH_BYTES],
}

impl OpenedFile {
    /// Returns the size of the code in the file, in bytes. Code takes the same memory from the
    /// cache as after its compilation. The size of a file that was changed can be wrong, but the
    /// code of this file is not loaded.
    fn code_bytes(&self) -> u64 {
        let outline_bytes = u64::from(u32::from_le_bytes(self.outline_length));
        self.bytes.saturating_sub(HEAD_BYTES as u64).saturating_sub(outline_bytes)
    }

    /// Reads the whole file. A file that has grown since it was opened is cut, and its digest
    /// differs.
    fn read(self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.bytes).unwrap_or_default());
        bytes.extend_from_slice(&self.digest);
        bytes.extend_from_slice(&self.outline_length);
        self.file.take(self.bytes.saturating_sub(HEAD_BYTES as u64)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Opens a file of the directory, if it is a regular file, and reads its head.
fn open(path: &Path) -> io::Result<OpenedFile> {
    let mut file = open_without_blocking(path)?;
    let facts = file.metadata()?;
    if !facts.is_file() || facts.len() > MAX_FILE_BYTES {
        return Err(io::Error::other("the file is not a regular file, or is too large"));
    }
    let (mut digest, mut outline_length) = ([0; DIGEST_BYTES], [0; LENGTH_BYTES]);
    file.read_exact(&mut digest)?;
    file.read_exact(&mut outline_length)?;
    Ok(OpenedFile { file, bytes: facts.len(), digest, outline_length })
}

/// Opens a file without blocking on a pipe or device, and without following a link.
fn open_without_blocking(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
        let flags = i32::try_from(flags).map_err(io::Error::other)?;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    options.open(path)
}

/// Splits the verified content of a file into the outline of the component (contract, manifest and
/// size) and its native code.
fn split_content(content: &[u8]) -> Option<(Outline, &[u8])> {
    let (length, rest) = content.split_first_chunk::<LENGTH_BYTES>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (head, code) = rest.split_at_checked(length)?;
    Some((serde_json::from_slice(head).ok()?, code))
}

/// Loads a component from code that was just compiled.
pub(crate) fn load_compiled(engine: &Engine, code: &[u8]) -> Result<Component, Rejection> {
    deserialize(engine, code)
        .ok_or_else(|| rejection::invalid("its compiled code cannot be loaded"))
}

#[expect(unsafe_code, reason = "loading compiled code is unsafe in wasmtime's interface")]
fn deserialize(engine: &Engine, code: &[u8]) -> Option<Component> {
    // SAFETY: the bytes come from `Engine::precompile_component`, in this process or in one that
    // this host started, and were since then either in memory or in a file whose keyed digest
    // matches. wasmtime itself checks its version and the engine's settings.
    unsafe { Component::deserialize(engine, code) }.ok()
}

#[cfg(unix)]
fn restrict_permissions(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn restrict_permissions(_directory: &Path) -> io::Result<()> {
    Ok(())
}
