//! Lines of an MCP server that runs as a program: the framing of messages, and the beginning of a
//! session. The program writes the input and exits, whatever it is asked. The tools of the report
//! are clean, and its notes are limited.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use wattle_mcp::check::Check;
use wattle_mcp::{McpConfig, McpServers, ServerConfig, StdioConfig, TransportConfig};

use super::folder;
use super::mcp::clean;

/// The program, which every Unix has.
const PROGRAM: &str = "/bin/cat";

/// The file that it writes.
const FILE: &str = "said";

/// The name of the server.
const NAME: &str = "server";

/// Timeout of a session. A session ends with its program, so no execution takes this long.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of notes of a report.
const NOTES: usize = 1_000;

/// Maximum size of a failure's message, in bytes. The message quotes only a part of the response.
const MESSAGE_BYTES: usize = 8 << 10;

/// Opens a session.
pub fn run(bytes: &[u8]) {
    let folder = folder();
    fs::write(folder.path().join(FILE), bytes).expect("there is room");
    let command = StdioConfig {
        program: PROGRAM.to_owned(),
        arguments: vec![FILE.to_owned()],
        env: BTreeMap::new(),
        folder: folder.path().to_owned(),
    };
    // With the stateless protocol, each session would start the program twice.
    let server = ServerConfig {
        timeout: TIMEOUT,
        handshake: true,
        ..ServerConfig::new(TransportConfig::Stdio(command))
    };
    let config = McpConfig { servers: BTreeMap::from([(NAME.to_owned(), server)]) };
    let report = crate::wait(async {
        let servers = McpServers::new(&config, |_, _| false).expect("the server is valid");
        let report = servers.check(NAME).await.expect("the server is configured");
        servers.close().await;
        report
    });
    check_report(&report);
}

/// Checks that the tools of a report are clean, and that its notes and its failure are limited.
pub(super) fn check_report(report: &Check) {
    clean(&report.tools);
    assert!(report.notes.len() <= NOTES, "{} notes", report.notes.len());
    if let Some(failure) = &report.failure {
        let size = failure.message.len();
        assert!((1..=MESSAGE_BYTES).contains(&size), "{size} bytes");
    }
}
