//! Settings of each server, with secrets resolved.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use url::Url;

/// Default timeout of a call.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Default limit of a result. A larger result is of no use to a model.
pub const DEFAULT_OUTPUT_BYTES: usize = 1 << 20;

/// Upper bound of the configurable result limit: a message is limited to 16 MiB, and JSON may
/// escape each byte of it.
pub const MAX_OUTPUT_BYTES: usize = 8 << 20;

/// Returns true if an address may be reached. The second argument permits private addresses.
pub type AddressPolicy = fn(IpAddr, bool) -> bool;

/// All configured servers.
#[derive(Clone, Debug, Default)]
pub struct McpConfig {
    /// The servers by name.
    pub servers: BTreeMap<String, ServerConfig>,
}

/// Settings of one server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Transport of the server.
    pub transport: TransportConfig,
    /// Timeout of a call and of connecting; [`DEFAULT_TIMEOUT`] by default. A call may request a
    /// shorter timeout.
    pub timeout: Duration,
    /// Maximum bytes of a result; [`DEFAULT_OUTPUT_BYTES`] by default, at most
    /// [`MAX_OUTPUT_BYTES`].
    pub output_bytes: usize,
    /// Whether sessions begin with the handshake of the earlier protocols even if the server knows
    /// the stateless protocol; false by default.
    pub handshake: bool,
    /// Secrets in the headers or the environment of the server. The host redacts these secrets in
    /// everything that the server sends.
    pub secrets: Vec<SecretString>,
}

/// Transport of a server.
#[derive(Clone, Debug)]
pub enum TransportConfig {
    /// Streamable HTTP.
    Http(HttpConfig),
    /// The standard streams of a process.
    Stdio(StdioConfig),
    /// The configuration is invalid, for this reason. The server keeps its name, and every call
    /// fails with the reason.
    Misconfigured(String),
}

/// A server that is reached over streamable HTTP.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Endpoint of the server.
    pub url: Url,
    /// Headers of every request.
    pub headers: BTreeMap<String, SecretString>,
    /// Whether the server may have a private or loopback address.
    pub private: bool,
}

/// A stdio server, which the host runs as a child process.
#[derive(Clone, Debug)]
pub struct StdioConfig {
    /// A path, or a name that is looked up in `PATH`.
    pub program: String,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// The whole environment of the process. The process inherits no variable of the host.
    pub env: BTreeMap<String, SecretString>,
    /// Working directory.
    pub folder: PathBuf,
}

impl ServerConfig {
    /// Creates the configuration of a server with the default limits.
    pub fn new(transport: TransportConfig) -> Self {
        Self {
            transport,
            timeout: DEFAULT_TIMEOUT,
            output_bytes: DEFAULT_OUTPUT_BYTES,
            handshake: false,
            secrets: Vec::new(),
        }
    }
}
