//! Settings of each server, with the secrets filled in.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use url::Url;

/// Longest wait for a call where a server's entry says nothing.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Largest result where a server's entry says nothing: more than a model reads with profit.
pub const DEFAULT_OUTPUT_BYTES: usize = 1 << 20;

/// Largest result that may be configured: a message on the wire is cut off at 16 MiB, and JSON
/// may escape each byte of it.
pub const MAX_OUTPUT_BYTES: usize = 8 << 20;

/// Whether an address may be reached; the second argument says whether private ones may.
pub type Reachable = fn(IpAddr, bool) -> bool;

/// All servers by name.
#[derive(Clone, Debug, Default)]
pub struct McpConfig {
    /// The servers.
    pub servers: BTreeMap<String, ServerConfig>,
}

/// One server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// How it is reached.
    pub reach: Reach,
    /// Longest wait for one call, and for connecting; [`DEFAULT_TIMEOUT`] by default. A call may
    /// ask for less.
    pub timeout: Duration,
    /// Largest result of a call; [`DEFAULT_OUTPUT_BYTES`] by default, [`MAX_OUTPUT_BYTES`] at
    /// most.
    pub output_bytes: usize,
    /// Whether a session begins with the handshake of the earlier protocols, also if the server knows the newer one.
    pub handshake: bool,
    /// Secrets that it gets, in headers or in its environment: nothing that it says shows them.
    pub secrets: Vec<SecretString>,
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Reach {
    /// Over streamable HTTP.
    Http(HttpConfig),
    /// As a program of its own, over its standard input and output.
    Command(CommandConfig),
    /// Not at all, for this reason: it is known by name, and every call says why it is of no use.
    Unready(String),
}

/// A server over HTTP.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Its endpoint.
    pub url: Url,
    /// Headers of every request.
    pub headers: BTreeMap<String, SecretString>,
    /// Whether it may have a private or loopback address.
    pub private: bool,
}

/// A server as a program.
#[derive(Clone, Debug)]
pub struct CommandConfig {
    /// The program: a path, or a name that is looked up in `PATH`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its whole environment; nothing is inherited.
    pub env: BTreeMap<String, SecretString>,
    /// Its working folder.
    pub folder: PathBuf,
}

impl ServerConfig {
    /// A server with the default bounds.
    pub fn new(reach: Reach) -> Self {
        Self {
            reach,
            timeout: DEFAULT_TIMEOUT,
            output_bytes: DEFAULT_OUTPUT_BYTES,
            handshake: false,
            secrets: Vec::new(),
        }
    }
}
