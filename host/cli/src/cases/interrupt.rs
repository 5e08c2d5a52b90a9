//! Ctrl-C during an evaluation.

use tokio::signal;
use tokio::sync::watch;

use crate::output::Output;

/// Counts the presses of Ctrl-C, which no longer ends the process.
pub(crate) struct Interrupt {
    count: watch::Receiver<u32>,
}

impl Interrupt {
    /// Installs the handler of Ctrl-C.
    pub(crate) fn listen() -> Self {
        let (sender, count) = watch::channel(0);
        tokio::spawn(async move {
            while signal::ctrl_c().await.is_ok() {
                sender.send_modify(|count| *count += 1);
                if *sender.borrow() == 1 {
                    Output::note("cancelling the running cases; press Ctrl-C again to end at once");
                }
            }
            // The sender stays alive as long as any receiver, so that receivers do not fail.
            sender.closed().await;
        });
        Self { count }
    }

    /// Returns true if Ctrl-C was pressed at least once.
    pub(crate) fn is_pressed(&self) -> bool {
        *self.count.borrow() > 0
    }

    /// Waits until Ctrl-C was pressed `times` times.
    pub(crate) async fn pressed(&self, times: u32) {
        let mut count = self.count.clone();
        if count.wait_for(|count| *count >= times).await.is_err() {
            // The runtime is shutting down.
            std::future::pending::<()>().await;
        }
    }
}
