//! One target per file. The documentation of each file states its properties. Every target also
//! checks that the host neither panics nor hangs.

pub mod app;
pub mod blob;
pub mod cel;
pub mod code;
pub mod component;
pub mod events;
pub mod export;
pub mod form;
pub mod frame;
pub mod graph;
pub mod guard;
pub mod history;
pub mod kept;
pub mod mcp;
pub mod memory;
pub mod native;
pub mod provider;
pub mod request;
pub mod schema;
pub mod script;
pub mod session;
pub mod session_http;
pub mod sql;
pub mod state;
pub mod store;
pub mod stream;
pub mod structured;
pub mod token;
pub mod typed;
pub mod url;
pub mod wasi_http;
pub mod wit;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::Router;
use tempfile::TempDir;
use tokio::net::TcpListener;
use wattle_graph::id::{AppName, PluginName};
use wattle_net::NetConfig;
use wattle_run::caller_id::CallerId;
use wattle_run::ports::Caller;

/// The address on which the servers of targets listen.
const HOST: &str = "127.0.0.1";

/// Requests per second that are allowed. The default would make executions wait.
const RATE: NonZeroU32 = NonZeroU32::new(1_000_000).expect("it is not 0");

/// Size of one edit: four bytes for the offset, one that is combined with the byte there by XOR.
const EDIT_BYTES: usize = 5;

/// Maximum number of edits. A torn page has more, but they are all alike.
const EDITS: usize = 64;

/// Splits a text input into its first line and the rest.
fn lines(bytes: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.split_once('\n').unwrap_or((text, "")))
}

/// Splits a line of an input into the name and the value of a header.
fn header_field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

/// Returns an intact file with the edits of an input.
fn edited(sound: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut file = sound.to_vec();
    for edit in edits.chunks_exact(EDIT_BYTES).take(EDITS) {
        let place = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize;
        let length = file.len();
        file[place % length] ^= edit[4];
    }
    file
}

/// Creates a folder for one execution, in memory if the system has a file system in memory.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    folder.expect("there is room")
}

/// Starts a server on a free port, which serves until the process ends. Returns its address.
async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind((HOST, 0)).await.expect("there is a free port");
    let address = listener.local_addr().expect("the server listens");
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Returns the configuration of a client that does not limit the rate of requests.
fn net_config() -> NetConfig {
    NetConfig { requests_per_second: RATE, burst: RATE, ..NetConfig::default() }
}

/// Returns the caller of host calls of a guest without a tenant.
fn caller() -> Caller {
    Caller {
        app: AppName::new("app").expect("the name is valid"),
        plugin: PluginName::new("guest").expect("the name is valid"),
        tenant: None,
        owner: CallerId::default(),
    }
}

/// Returns true if a text has no control characters except line breaks and tabs.
fn is_clean(text: &str) -> bool {
    !text.contains(|char: char| char.is_control() && !matches!(char, '\n' | '\t'))
}

/// Locks a mutex, even if an execution that held the lock has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
