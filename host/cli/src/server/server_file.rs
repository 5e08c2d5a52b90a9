//! The server file, `server.json`. The server of a data folder writes the file, and commands read
//! it.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::Error;

/// The content of the server file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// URL of the server, such as `http://127.0.0.1:8700`.
    pub address: String,
    /// Process id of the server.
    pub pid: u32,
    /// Instance id of the server. Each start generates a new id. `GET /api/v1/health` returns the
    /// same id.
    pub instance: String,
}

/// The server file of this server.
pub(super) struct ServerFile {
    path: PathBuf,
    info: ServerInfo,
}

impl ServerFile {
    pub(super) fn write(config: &Config, addr: SocketAddr, instance: &str) -> Result<Self, Error> {
        let path = config.server_file();
        // A server that listens on all addresses is also reachable on a loopback address.
        let ip = match addr.ip() {
            ip if !ip.is_unspecified() => ip,
            std::net::IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        let scheme = if config.server.tls.is_some() { "https" } else { "http" };
        let address = format!("{scheme}://{}", SocketAddr::new(ip, addr.port()));
        let info = ServerInfo { address, pid: std::process::id(), instance: instance.to_owned() };
        let text = serde_json::to_string_pretty(&info).unwrap_or_default();
        // A rename is atomic, so a reader never sees an incomplete file.
        let draft = path.with_extension("json.new");
        std::fs::write(&draft, text).map_err(Error::file("write", &draft))?;
        std::fs::rename(&draft, &path).map_err(Error::file("write", &path))?;
        Ok(Self { path, info })
    }

    /// Removes the file, unless another server has replaced it.
    pub(super) fn remove(&self) {
        if read_file(&self.path).as_ref() == Some(&self.info)
            && let Err(error) = std::fs::remove_file(&self.path)
        {
            tracing::debug!(%error, "cannot remove the server file");
        }
    }
}

/// Reads the server file of a data folder. The server that the file describes may no longer be
/// running.
pub fn read(config: &Config) -> Option<ServerInfo> {
    read_file(&config.server_file())
}

fn read_file(path: &std::path::Path) -> Option<ServerInfo> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}
