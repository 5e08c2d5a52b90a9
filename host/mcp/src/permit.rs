//! Whether a message that has an effect may leave.
//!
//! Calls, and answers to questions in them, wait in `rmcp` for their turn and for a connection,
//! where the engine does not see them. So the lease of their thread is compared again on sending.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use wattle_run::ports::lease::{Lease, Leased};
use wattle_run::ports::store::StoreError;

/// Why a message did not leave.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsent {
    /// Another host has the thread of the call.
    #[error(transparent)]
    Fenced(StoreError),
    /// The server did not know the session of the message. Another one is open.
    #[error("the server does not know the session any more")]
    Forgotten,
}

impl From<Unsent> for io::Error {
    fn from(reason: Unsent) -> Self {
        Self::other(reason)
    }
}

/// What a message may leave under; clones share it. By default nothing is asked of a message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Permit(Arc<Mutex<Terms>>);

/// What is asked of a message.
#[derive(Debug, Default)]
struct Terms {
    leased: Leased,
    is_revoked: bool,
}

impl Permit {
    /// Lets a message leave only under a lease.
    pub(crate) fn under(leased: &Leased) -> Self {
        Self(Arc::new(Mutex::new(Terms { leased: leased.clone(), is_revoked: false })))
    }

    /// Asks for no lease any more: the server has the message.
    pub(crate) fn lift(&self) {
        self.terms().leased = Leased::default();
    }

    /// Lets the message leave no more, since the server did not know its session: the library would send it again in
    /// another one, even if it needs no lease any more.
    pub(crate) fn revoke(&self) {
        self.terms().is_revoked = true;
    }

    /// Sends a message, as long as that is permitted.
    ///
    /// # Errors
    ///
    /// [`Unsent`] within an error of the way to the server.
    pub(crate) async fn hold<T>(
        &self,
        sent: Pin<&mut (impl Future<Output = T> + Send + ?Sized)>,
    ) -> io::Result<T> {
        if self.is_revoked() {
            return Err(Unsent::Forgotten.into());
        }
        let permitted = Leased::new(Arc::new(self.clone()));
        permitted.hold(sent).await.map_err(|fenced| Unsent::Fenced(fenced).into())
    }

    /// No code that can panic runs under this lock.
    fn terms(&self) -> MutexGuard<'_, Terms> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_revoked(&self) -> bool {
        self.terms().is_revoked
    }

    fn leased(&self) -> Leased {
        self.terms().leased.clone()
    }
}

#[async_trait]
impl Lease for Permit {
    fn is_sure(&self) -> bool {
        self.leased().is_sure()
    }

    async fn prove(&self) -> Result<(), StoreError> {
        let proven = self.leased().prove().await;
        // The server may have asked in its call meanwhile.
        if self.is_sure() { Ok(()) } else { proven }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn what_is_revoked_does_not_leave() {
        let permit = Permit::default();
        assert!(permit.hold(pin!(async {})).await.is_ok());
        permit.clone().revoke();
        permit.lift();
        let refused = permit.hold(pin!(async {})).await.unwrap_err();
        let reason = refused.get_ref().and_then(|reason| reason.downcast_ref::<Unsent>());
        assert!(matches!(reason, Some(Unsent::Forgotten)), "{refused:?}");
    }
}
