//! Secrets that a host generates: one signs links to blobs, the other signs compiled code.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use uuid::Uuid;

use crate::config::{Config, StoreKind};
use crate::data_folder::{CACHE_KEY_FILE, LINK_KEY_FILE};
use crate::error::Error;

/// Size of a secret in bytes. A secret is generated from two random ids.
const SECRET_BYTES: usize = 32;

/// Returns the secret of links. The first start generates the secret and stores it in the data
/// folder. With an in-memory store, the secret is valid for this process only.
///
/// # Errors
///
/// [`Error::File`] if the secret cannot be read or written, or is too short.
pub(super) fn link_secret(config: &Config) -> Result<Vec<u8>, Error> {
    if config.store.kind == StoreKind::Memory {
        return Ok(generate());
    }
    let path = config.data.join(LINK_KEY_FILE);
    load_or_create(&path).map_err(|source| Error::File { operation: "use", path, source })
}

/// Returns the secret that signs compiled code. It is generated on first use.
///
/// # Errors
///
/// [`Error::File`] if the secret cannot be read or written, or is too short.
pub(super) fn cache_key(config: &Config) -> Result<[u8; SECRET_BYTES], Error> {
    let path = config.data.join(CACHE_KEY_FILE);
    let secret = load_or_create(&path).and_then(|secret| {
        secret.first_chunk().copied().ok_or_else(|| io::Error::from(ErrorKind::InvalidData))
    });
    secret.map_err(|source| Error::File { operation: "use", path, source })
}

fn generate() -> Vec<u8> {
    [Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat()
}

/// Reads a secret. If the secret does not exist, generates a secret and writes it atomically.
fn load_or_create(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Ok(known) if known.len() >= SECRET_BYTES => return Ok(known),
        // A short secret could be guessed, and every link could be forged.
        Ok(known) => {
            return Err(io::Error::new(ErrorKind::InvalidData, wrong_length_message(known.len())));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let secret = generate();
    let part = path.with_extension("key.part");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&part)?;
    file.write_all(&secret)?;
    file.sync_all()?;
    fs::rename(&part, path)?;
    Ok(secret)
}

fn wrong_length_message(bytes: usize) -> String {
    format!(
        "the secret has {bytes} bytes, not {SECRET_BYTES}; delete the file to generate a new \
         secret, which invalidates everything that the old secret signed"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_generated_once_and_a_short_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LINK_KEY_FILE);
        let secret = load_or_create(&path).unwrap();
        assert_eq!((secret.len(), load_or_create(&path).unwrap()), (SECRET_BYTES, secret.clone()));
        fs::write(&path, &secret[..SECRET_BYTES - 1]).unwrap();
        assert!(load_or_create(&path).unwrap_err().to_string().contains("31 bytes"));
    }
}
