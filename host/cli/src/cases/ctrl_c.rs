//! Ctrl-C during tests and evaluations.

use tokio::sync::watch;

use crate::error::Error;
use crate::output::Output;
use crate::server::stop::Signals;

/// Counts the presses of Ctrl-C, which no longer ends the process. On Unix, SIGTERM counts as a
/// press.
pub(crate) struct CtrlC {
    count: watch::Receiver<u32>,
}

impl CtrlC {
    /// Installs the handlers of the signals.
    ///
    /// # Errors
    ///
    /// [`Error::Unusable`] if the system refuses the handlers.
    pub(crate) fn listen() -> Result<Self, Error> {
        let signals = Signals::listen();
        let mut signals = signals
            .map_err(|error| Error::Unusable { what: "signals", message: error.to_string() })?;
        let (sender, count) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                signals.next().await;
                sender.send_modify(|count| *count += 1);
            }
        });
        Ok(Self { count })
    }

    /// Returns true if Ctrl-C was pressed at least once.
    pub(crate) fn is_pressed(&self) -> bool {
        *self.count.borrow() > 0
    }

    /// Waits until Ctrl-C was pressed.
    pub(crate) async fn pressed(&self) {
        self.pressed_times(1).await;
    }

    /// Waits until Ctrl-C was pressed twice. Prints at the first press that the running cases are
    /// cancelled.
    pub(crate) async fn pressed_again(&self) {
        self.pressed().await;
        Output::note("cancelling the running cases; press Ctrl-C again to end at once");
        self.pressed_times(2).await;
    }

    async fn pressed_times(&self, times: u32) {
        let mut count = self.count.clone();
        if count.wait_for(|count| *count >= times).await.is_err() {
            // The sender was dropped, because the runtime is shutting down.
            std::future::pending::<()>().await;
        }
    }
}
