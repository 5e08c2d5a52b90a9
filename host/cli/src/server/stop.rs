//! Signals that end the server.
//!
//! They are heard on a thread of its own: also while work for guests and clients keeps all others
//! busy, a signal is heard and the process ends in time. What is cut then goes on after the next
//! start, as after a crash.

use std::io;
use std::process::exit;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;

/// Ctrl-C, and SIGTERM where there is one.
pub(crate) struct StopSignal(oneshot::Receiver<()>);

impl StopSignal {
    /// From now on a signal no longer ends the process by itself. The first one ends
    /// [`Self::received`]; a second one, or a stop that takes longer than `limit`, ends the process at
    /// once.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] if the system refuses the thread or the handlers.
    pub(crate) fn listen(limit: Duration) -> Result<Self, Error> {
        let (tell, told) = oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let listening = thread::Builder::new().name("wattle-stop".into()).spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(hear(tell, &ready, limit)),
                Err(error) => drop(ready.send(Err(error))),
            }
        });
        let listening = listening.and_then(|_thread| {
            let ended = |_| io::Error::other("the thread for signals has ended");
            is_ready.recv().map_err(ended)?
        });
        listening
            .map(|()| Self(told))
            .map_err(|error| Error::Setup { what: "signals", message: error.to_string() })
    }

    /// Waits for the first signal.
    pub(crate) async fn received(self) {
        // The thread that tells it ends only with the process.
        let _ = self.0.await;
    }
}

async fn hear(
    tell: oneshot::Sender<()>,
    ready: &std::sync::mpsc::Sender<io::Result<()>>,
    limit: Duration,
) {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => return drop(ready.send(Err(error))),
    };
    // Errors mean that nobody waits any more.
    let _ = ready.send(Ok(()));
    signals.next().await;
    let _ = tell.send(());
    match tokio::time::timeout(limit, signals.next()).await {
        Ok(()) => exit(Exit::Stopped as i32),
        Err(_elapsed) => {
            let seconds = limit.as_secs();
            Output::error(&format!(
                "something did not let go within {seconds} seconds; what was at work goes on after \
                 the next start"
            ));
            exit(Exit::Failed as i32)
        }
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        // Without a handler of its own the process still ends by Ctrl-C.
        let _ = tokio::signal::ctrl_c().await;
    }
}
