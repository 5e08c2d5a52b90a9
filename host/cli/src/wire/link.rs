//! Secrets that a host makes for itself: one signs paths of blobs, one compiled code.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use uuid::Uuid;

use crate::config::{Config, StoreKind};
use crate::error::Error;

/// File of the data folder with the secret of links.
const FILE: &str = "link.key";

/// File of the data folder with the secret of compiled code. It is not in the folder with the code.
const CACHE_FILE: &str = "cache.key";

/// Bytes of a secret: two random ids.
const BYTES: usize = 32;

/// The secret: made at the first start and kept beside the blobs; one of this process alone where
/// nothing is kept.
///
/// # Errors
///
/// [`Error::File`] if it cannot be read or written, or is too short.
pub(super) fn link_secret(config: &Config) -> Result<Vec<u8>, Error> {
    if config.store.kind == StoreKind::Memory {
        return Ok(fresh());
    }
    let path = config.data.join(FILE);
    kept(&path).map_err(|source| Error::File { operation: "use", path, source })
}

/// The secret that compiled code is kept with: made when it is first needed.
///
/// # Errors
///
/// [`Error::File`] if it cannot be read or written, or is too short.
pub(super) fn cache_key(config: &Config) -> Result<[u8; BYTES], Error> {
    let path = config.data.join(CACHE_FILE);
    let secret = kept(&path).and_then(|secret| {
        secret.first_chunk().copied().ok_or_else(|| io::Error::from(ErrorKind::InvalidData))
    });
    secret.map_err(|source| Error::File { operation: "use", path, source })
}

fn fresh() -> Vec<u8> {
    [Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat()
}

/// Reads the secret; makes it if there is none, whole or not at all.
fn kept(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Ok(known) if known.len() >= BYTES => return Ok(known),
        // A short secret could be guessed, and with it every link.
        Ok(known) => return Err(io::Error::new(ErrorKind::InvalidData, short(known.len()))),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let secret = fresh();
    let part = path.with_extension("part");
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

fn short(bytes: usize) -> String {
    format!(
        "it holds {bytes} bytes and needs {BYTES}; delete it to have it made again, after which what \
         was signed with it is not accepted any more"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_made_once_and_a_short_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let secret = kept(&path).unwrap();
        assert_eq!((secret.len(), kept(&path).unwrap()), (BYTES, secret.clone()));
        fs::write(&path, &secret[..BYTES - 1]).unwrap();
        assert!(kept(&path).unwrap_err().to_string().contains("31 bytes"));
    }
}
