//! The file of the tenant routes. The file contains keys, so only the user that runs the host can
//! read the file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::tenant::route_document::RouteDocument;

/// The version of the file format. A file of another version is rejected.
const VERSION: u32 = 1;

/// The error for a folder in place of the file. The host never makes such a folder.
const FOLDER: &str = "it is a folder, not a file; move the folder away, and configure what wrote \
                      it to use another folder";

/// One stored route.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredRoute {
    pub(super) tenant: String,
    pub(super) route: String,
    pub(super) config: RouteDocument,
}

#[derive(Serialize, Deserialize)]
struct Contents {
    version: u32,
    routes: Vec<StoredRoute>,
}

/// Reads the stored routes; an empty list if the file does not exist.
pub(super) fn read(path: &Path) -> Result<Vec<StoredRoute>, ConfigError> {
    let failed = |reason: String| ConfigError::TenantFile {
        operation: "read",
        path: path.display().to_string(),
        reason,
    };
    let refused = |reason: String| failed(format!("{reason}; correct the file or remove it"));
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(_) if path.is_dir() => return Err(failed(FOLDER.to_owned())),
        Err(error) => return Err(refused(error.to_string())),
    };
    let contents: Contents =
        serde_json::from_slice(&bytes).map_err(|error| refused(error.to_string()))?;
    if contents.version != VERSION {
        return Err(refused(format!("its version is {}, not {VERSION}", contents.version)));
    }
    Ok(contents.routes)
}

/// Replaces the whole file atomically: a reader, and a host that starts after a crash, gets either
/// the old state or the new state.
pub(super) fn write(path: &Path, routes: Vec<StoredRoute>) -> Result<(), ConfigError> {
    replace(path, &Contents { version: VERSION, routes }).map_err(|error| ConfigError::TenantFile {
        operation: "write",
        path: path.display().to_string(),
        reason: error.to_string(),
    })
}

fn replace(path: &Path, contents: &Contents) -> io::Result<()> {
    let fresh = path.with_extension("json.new");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = create_private(&fresh)?;
    file.write_all(&serde_json::to_vec_pretty(contents)?)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    match path.parent() {
        // The rename is durable once the folder is synced.
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
