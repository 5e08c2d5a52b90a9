//! Stdio servers: processes that exchange messages over their standard streams.
//!
//! A process receives only the configured environment. The process leads a process group, which
//! also contains the processes that a shell or a package runner starts. At the end of a session the
//! host closes the standard input, then sends `SIGTERM` to the group, and then kills the group.
//! When a host crashes, the operating system closes the standard input of its servers.

use std::process::Stdio;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessGroup};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Empty, empty};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use wattle_graph::failure::{Failure, code};
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::json::bounded::{JsonError, JsonLimit};

use crate::calls::Calls;
use crate::config::StdioConfig;
use crate::connect::MAX_MESSAGE_BYTES;
use crate::normalize::{self, Normalizer};
use crate::sanitizer::Sanitizer;

/// Longest line of the standard error that is logged as one line.
const MAX_LINE_BYTES: u64 = 4096;

/// Maximum messages that wait for the session, in addition to the message that is being read.
const WAITING_MESSAGES: usize = 1;

/// Wait for the exit of the process after each step of the shutdown.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// A server process and its transport.
pub(super) struct StdioTransport {
    /// Sends messages to the process. Messages of the process are parsed in [`forward_messages`],
    /// and only there.
    outgoing: AsyncRwTransport<RoleClient, Empty, ChildStdin>,
    incoming: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    /// Calls in progress on the session.
    calls: Calls,
    /// `None` once the process has exited.
    process_group: Option<Box<dyn ChildWrapper>>,
}

/// Starts the server process.
pub(super) fn spawn(
    server: &str,
    config: &StdioConfig,
    normalizer: Normalizer,
    calls: &Calls,
) -> Result<StdioTransport, Failure> {
    let mut command = Command::new(&config.program);
    command
        .args(&config.arguments)
        .env_clear()
        .envs(config.env.iter().map(|(name, value)| (name, value.expose_secret())))
        .current_dir(&config.folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let unable = |reason: &dyn std::fmt::Display| {
        Failure::new(
            code::UNAVAILABLE,
            format!(
                "the MCP server `{server}` cannot be started: `{}`: {reason}; check `command` under \
                 `[mcp.{server}]`",
                config.program
            ),
        )
    };
    let mut wrapped = CommandWrap::from(command);
    wrapped.wrap(ProcessGroup::leader());
    let mut group = wrapped.spawn().map_err(|error| unable(&error))?;
    let pipes = (group.stdin().take(), group.stdout().take(), group.stderr().take());
    let (Some(input), Some(output), Some(complaints)) = pipes else {
        return Err(unable(&"it has no standard streams"));
    };
    tokio::spawn(forward_stderr(normalizer.sanitizer().clone(), complaints));
    let (messages, incoming) = mpsc::channel(WAITING_MESSAGES);
    tokio::spawn(forward_messages(output, messages, normalizer));
    let (outgoing, calls) = (AsyncRwTransport::new(empty(), input), calls.clone());
    Ok(StdioTransport { outgoing, incoming, calls, process_group: Some(group) })
}

impl Transport<RoleClient> for StdioTransport {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let permit = self.calls.take_permit(&message);
        let mut sent: BoxFuture<'static, Result<(), Self::Error>> =
            self.outgoing.send(message).boxed();
        // Writing continues only while the permit is valid, since a server acts only on complete
        // messages.
        async move { permit.send(sent.as_mut()).await? }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.incoming.recv().await;
        if message.is_none() {
            self.calls.connection_lost().cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.outgoing.close().await?;
        let Some(group) = &mut self.process_group else { return Ok(()) };
        if timeout(EXIT_TIMEOUT, group.wait()).await.is_err() {
            #[cfg(unix)]
            group.signal(SIGTERM)?;
            if timeout(EXIT_TIMEOUT, group.wait()).await.is_err() {
                Box::into_pin(group.kill()).await?;
            }
        }
        // Kills the rest of the process group.
        group.start_kill().ok();
        self.process_group = None;
        Ok(())
    }
}

/// Number of the termination signal on every Unix.
#[cfg(unix)]
const SIGTERM: i32 = 15;

/// Kills the process group of an abandoned session.
impl Drop for StdioTransport {
    fn drop(&mut self) {
        let Some(mut group) = self.process_group.take() else { return };
        group.start_kill().ok();
        // If there is no runtime, the operating system reaps the process when the host exits.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { group.wait().await.ok() });
        }
    }
}

/// Parses and normalizes messages, and forwards them to the session. Lines that are not messages
/// are logged, because many servers also print other text to their standard output. A message that
/// exceeds a limit ends the session, since it is unknown to which request the message responds.
async fn forward_messages(
    output: ChildStdout,
    to: mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
    normalizer: Normalizer,
) {
    let sanitizer = normalizer.sanitizer();
    let server = sanitizer.server_name();
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let read = (&mut output).take(MAX_MESSAGE_BYTES as u64).read_until(b'\n', &mut line).await;
        match read {
            Ok(read) if read > 0 => {}
            _ => return,
        }
        if line.last() != Some(&b'\n') && line.len() == MAX_MESSAGE_BYTES {
            tracing::warn!(
                server,
                limit = MAX_MESSAGE_BYTES,
                "a message of an MCP server is too large"
            );
            return;
        }
        let (owner, is_long) = (sanitizer.work_owner(), is_long_parse(line.len()));
        match block_in_place_in_turn(owner, is_long, || parse_line(&normalizer, &line)).await {
            Ok(Some(messages)) => {
                for message in messages {
                    if to.send(message).await.is_err() {
                        return;
                    }
                }
            }
            Ok(None) => {
                let text = sanitizer.quote(&String::from_utf8_lossy(&line));
                if !text.is_empty() {
                    tracing::info!(server, "{text}");
                }
            }
            Err(exceeded) => {
                tracing::warn!(server, "a message of an MCP server cannot be read: {exceeded}");
                return;
            }
        }
    }
}

/// Parses and normalizes the messages of a line. Returns `None` if the line is not a message.
/// Messages that the protocol does not define are omitted.
fn parse_line(
    normalizer: &Normalizer,
    line: &[u8],
) -> Result<Option<Vec<RxJsonRpcMessage<RoleClient>>>, JsonLimit> {
    let document = match normalizer.parse(line) {
        Ok(document) => document,
        Err(JsonError::Syntax(_)) => return Ok(None),
        Err(JsonError::Limit(exceeded)) => return Err(exceeded),
    };
    let server = normalizer.sanitizer().server_name();
    let parse = |mut message: Value| {
        normalizer.normalize(&mut message);
        let parsed = serde_json::from_value(message);
        parsed.inspect_err(|error| tracing::debug!(server, %error, "unknown message")).ok()
    };
    let messages = normalize::split_messages(document);
    Ok(messages.map(|messages| messages.into_iter().filter_map(parse).collect()))
}

/// Logs the standard error of the process until its end.
async fn forward_stderr(sanitizer: Sanitizer, complaints: ChildStderr) {
    let mut complaints = BufReader::new(complaints);
    loop {
        let mut line = Vec::new();
        match (&mut complaints).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(read) if read > 0 => {
                let text = sanitizer.quote(&String::from_utf8_lossy(&line));
                tracing::info!(server = sanitizer.server_name(), "{text}");
            }
            _ => return,
        }
    }
}
