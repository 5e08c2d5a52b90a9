//! Signals that stop the server.
//!
//! A separate thread handles the signals, so that the process ends in time even if guests and
//! clients keep all other threads busy. Runs that are aborted by the exit are recovered after the
//! next start, as after a crash.

use std::io;
use std::process::exit;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;

/// Ctrl-C, and on Unix also SIGTERM.
pub(crate) struct StopSignal(oneshot::Receiver<()>);

impl StopSignal {
    /// Starts to handle the signals, which no longer end the process from then on. The first signal
    /// completes [`Self::wait`]. The process exits at the second signal, or if the stop takes
    /// longer than `limit`.
    ///
    /// # Errors
    ///
    /// [`Error::Unusable`] if the thread or the handlers cannot be created.
    pub(crate) fn listen(limit: Duration) -> Result<Self, Error> {
        let (sender, receiver) = oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let listening = thread::Builder::new().name("wattle-stop".into()).spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(handle_signals(sender, &ready, limit)),
                Err(error) => drop(ready.send(Err(error))),
            }
        });
        let listening = listening.and_then(|_thread| {
            let ended = |_| io::Error::other("the signal thread has ended");
            is_ready.recv().map_err(ended)?
        });
        listening
            .map(|()| Self(receiver))
            .map_err(|error| Error::Unusable { what: "signals", message: error.to_string() })
    }

    /// Waits for the first signal.
    pub(crate) async fn wait(self) {
        // The sender lives on the signal thread, which ends only with the process.
        let _ = self.0.await;
    }
}

async fn handle_signals(
    sender: oneshot::Sender<()>,
    ready: &std::sync::mpsc::Sender<io::Result<()>>,
    limit: Duration,
) {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return drop(ready.send(Err(error))),
    };
    // The send fails only if the receiver no longer waits.
    let _ = ready.send(Ok(()));
    signals.next().await;
    let _ = sender.send(());
    match tokio::time::timeout(limit, signals.next()).await {
        Ok(()) => exit(Exit::Stopped as i32),
        Err(_elapsed) => {
            let seconds = limit.as_secs();
            Output::error(&format!(
                "the host did not stop within {seconds} seconds; its runs are recovered after the \
                 next start"
            ));
            exit(Exit::Failed as i32)
        }
    }
}

/// The handlers of Ctrl-C and, on Unix, of SIGTERM. While the handlers are installed, the signals
/// do not end the process.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal since the handlers were installed.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// The handler of Ctrl-C. Once the handler is installed, Ctrl-C does not end the process.
#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// Returns the handler, which is installed at the first wait.
    ///
    /// # Errors
    ///
    /// None.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits for the next Ctrl-C.
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // The handler could not be installed, so Ctrl-C ends the process.
            std::future::pending::<()>().await;
        }
    }
}
