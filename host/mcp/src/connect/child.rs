//! Servers as programs, over their standard input and output.
//!
//! A program gets nothing that is not configured. It leads a process group, which ends with its session: first its input
//! is closed, then the group is asked to end, then it is killed. A shell or a package runner that starts the server
//! proper is in the same group. A host that dies closes the input of its servers.

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
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex,
};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use wattle_graph::failure::{Failure, code};

use crate::calls::Calls;
use crate::config::CommandConfig;
use crate::connect::MESSAGE_BYTES;
use crate::mend::{self, Mender};
use crate::speaker::Speaker;

/// Longest line of a program's complaints that is logged as one.
const LINE_BYTES: u64 = 4096;

/// Bytes of messages that wait to be read.
const PIPE_BYTES: usize = 64 << 10;

/// How long a program may take to end after each way to ask it.
const GOODBYE: Duration = Duration::from_secs(2);

/// A program and the way to it.
pub(super) struct Program {
    transport: AsyncRwTransport<RoleClient, DuplexStream, ChildStdin>,
    /// The calls on it.
    calls: Calls,
    /// `None` when it has ended.
    group: Option<Box<dyn ChildWrapper>>,
}

/// Starts the program.
pub(super) fn start(
    server: &str,
    config: &CommandConfig,
    mender: Mender,
    calls: &Calls,
) -> Result<Program, Failure> {
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
    tokio::spawn(log(mender.speaker().clone(), complaints));
    let (read, write) = duplex(PIPE_BYTES);
    tokio::spawn(pass_on(output, write, mender));
    let (transport, calls) = (AsyncRwTransport::new(read, input), calls.clone());
    Ok(Program { transport, calls, group: Some(group) })
}

impl Transport<RoleClient> for Program {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let permit = self.calls.permit_of(&message);
        let mut sent: BoxFuture<'static, Result<(), Self::Error>> =
            self.transport.send(message).boxed();
        // What has begun to be written is on its way: a program reads whole messages only.
        async move { permit.hold(sent.as_mut()).await? }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.transport.receive().await;
        if message.is_none() {
            self.calls.lost().cancel();
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.transport.close().await?;
        let Some(group) = &mut self.group else { return Ok(()) };
        if timeout(GOODBYE, group.wait()).await.is_err() {
            #[cfg(unix)]
            group.signal(SIGTERM)?;
            if timeout(GOODBYE, group.wait()).await.is_err() {
                Box::into_pin(group.kill()).await?;
            }
        }
        // What the program started and left behind.
        group.start_kill().ok();
        self.group = None;
        Ok(())
    }
}

/// The number of the signal that asks a process to end, on every Unix.
#[cfg(unix)]
const SIGTERM: i32 = 15;

/// An abandoned session leaves no process behind.
impl Drop for Program {
    fn drop(&mut self) {
        let Some(mut group) = self.group.take() else { return };
        group.start_kill().ok();
        // Without a runtime the system collects what is left when the host ends.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { group.wait().await.ok() });
        }
    }
}

/// Passes messages on in the form of the protocol. Lines that are no messages are left out: many programs print to the
/// stream of their messages.
async fn pass_on(output: ChildStdout, mut to: DuplexStream, mender: Mender) {
    let speaker = mender.speaker();
    let server = speaker.name();
    let mut output = BufReader::new(output);
    loop {
        let mut line = Vec::new();
        let read = (&mut output).take(MESSAGE_BYTES as u64).read_until(b'\n', &mut line).await;
        match read {
            Ok(read) if read > 0 => {}
            _ => return,
        }
        if line.last() != Some(&b'\n') && line.len() == MESSAGE_BYTES {
            tracing::warn!(
                server,
                limit = MESSAGE_BYTES,
                "a message of an MCP server is too large"
            );
            return;
        }
        let read = mender.read(&line).ok();
        let Some(messages) = read.and_then(mend::messages) else {
            let text = speaker.quote(&String::from_utf8_lossy(&line));
            if !text.is_empty() {
                tracing::info!(server, "{text}");
            }
            continue;
        };
        for mut message in messages {
            mender.mend(&mut message);
            let mut line = message.to_string();
            line.push('\n');
            if to.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Passes on what a program says to its operator, until it ends.
async fn log(speaker: Speaker, complaints: ChildStderr) {
    let mut complaints = BufReader::new(complaints);
    loop {
        let mut line = Vec::new();
        match (&mut complaints).take(LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(read) if read > 0 => {
                let text = speaker.quote(&String::from_utf8_lossy(&line));
                tracing::info!(server = speaker.name(), "{text}");
            }
            _ => return,
        }
    }
}
