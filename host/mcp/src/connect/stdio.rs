//! Stdio servers: processes that exchange messages over their standard streams.
//!
//! A process receives only the configured environment. The process leads a process group, which
//! also contains the processes that a shell or a package runner starts. At the end of a session the
//! host closes the standard input, then sends `SIGTERM` to the group, and then kills the group.
//!
//! When a host crashes, the operating system closes the standard input of its servers, and does
//! nothing else. A parent-death signal needs `unsafe` code between `fork` and `exec`, is also sent
//! when the thread that started the process ends, as threads of the runtime do, and does not reach
//! the rest of the group. `host/docs/security.md` describes the limit for operators.

mod reader;

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
use tokio::io::{Empty, empty};
use tokio::process::{ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use wattle_graph::failure::{Failure, code};
use wattle_run::service_memory::ServiceMemory;

use crate::calls::Calls;
use crate::config::StdioConfig;
use crate::normalize::Normalizer;

/// Maximum messages that wait for the session, in addition to the message that is being read.
const WAITING_MESSAGES: usize = 1;

/// Wait for the exit of the process after each step of the shutdown, and for the end of its streams
/// after the session.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// A server process and its transport.
pub(super) struct StdioTransport {
    /// Sends messages to the process. Messages of the process are parsed in
    /// [`forward_messages`](reader::forward_messages), and only there.
    outgoing: AsyncRwTransport<RoleClient, Empty, ChildStdin>,
    incoming: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    /// Calls in progress on the session.
    calls: Calls,
    /// `None` once the process has exited.
    process_group: Option<Box<dyn ChildWrapper>>,
    /// Ends the tasks that read the streams of the process.
    _readers: DropGuard,
}

/// Starts the server process. Its messages count as `memory` until the session has them.
pub(super) fn spawn(
    server: &str,
    config: &StdioConfig,
    normalizer: Normalizer,
    calls: &Calls,
    memory: ServiceMemory,
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
    let ended = CancellationToken::new();
    spawn_reader(&ended, reader::forward_stderr(complaints, normalizer.sanitizer().clone()));
    let (messages, incoming) = mpsc::channel(WAITING_MESSAGES);
    let (outgoing, calls) = (AsyncRwTransport::new(empty(), input), calls.clone());
    let read = reader::forward_messages(output, messages, normalizer, calls.clone(), memory);
    spawn_reader(&ended, read);
    let (process_group, readers) = (Some(group), ended.drop_guard());
    Ok(StdioTransport { outgoing, incoming, calls, process_group, _readers: readers })
}

/// Spawns a task that reads a stream of the process until the end of the stream. A process that has
/// left the process group may keep the stream open, so the task also ends some time after the
/// session.
fn spawn_reader(ended: &CancellationToken, read: impl Future<Output = ()> + Send + 'static) {
    let ended = ended.clone();
    tokio::spawn(async move {
        let abandoned = async {
            ended.cancelled().await;
            sleep(EXIT_TIMEOUT).await;
        };
        tokio::select! {
            () = read => {}
            () = abandoned => {}
        }
    });
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

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn stream_that_stays_open_is_abandoned_after_the_session() {
        let (stream, abandoned) = oneshot::channel::<()>();
        let ended = CancellationToken::new();
        let read = async move {
            let _stream = stream;
            pending::<()>().await;
        };
        spawn_reader(&ended, read);
        drop(ended.drop_guard());
        assert!(abandoned.await.is_err());
    }
}
