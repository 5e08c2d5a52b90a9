//! A guest built for `wasm32-wasip2`, as third parties build theirs: its standard library imports
//! files, environment, sockets, clocks and output. The host provides an empty WASI context.

use std::net::{TcpStream, UdpSocket};
use std::time::SystemTime;

use wattle_plugin::prelude::{Context, Empty, Failure, JsonSchema, Serialize, node};

/// The capabilities that the guest could use.
#[derive(Debug, Serialize, JsonSchema)]
struct Reached {
    /// Names of the attempts that succeeded. The list must be empty.
    reached: Vec<String>,
    /// Seconds since 1970 by the WASI clock.
    seconds: u64,
}

/// Tries files, environment, arguments and sockets, and writes to its output, also blank lines.
#[node]
fn explore(_context: &Context, _input: Empty) -> Result<Reached, Failure> {
    report("\n \r");
    report("hello from the standard output");
    complain("hello from the standard error");
    let attempts = [
        ("read a file", std::fs::read("/etc/hostname").is_ok()),
        ("list the root", std::fs::read_dir("/").is_ok()),
        ("write a file", std::fs::write("found", "x").is_ok()),
        ("environment", std::env::vars().next().is_some()),
        ("arguments", std::env::args().count() > 0),
        ("connect", TcpStream::connect("127.0.0.1:80").is_ok()),
        ("bind", UdpSocket::bind("127.0.0.1:0").is_ok()),
    ];
    let reached =
        attempts.into_iter().filter(|(_, worked)| *worked).map(|(name, _)| name.into()).collect();
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Ok(Reached { reached, seconds: since.as_secs() })
}

#[expect(clippy::print_stdout, reason = "the host captures the output")]
fn report(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "the host captures the output")]
fn complain(text: &str) {
    eprintln!("{text}");
}

wattle_plugin::export! { nodes: [explore] }
