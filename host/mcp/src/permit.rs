//! Decides whether a message with an effect may be sent.
//!
//! Calls and elicitation answers wait in `rmcp` for their turn and for a connection, outside of the engine's control.
//! The lease of the thread is therefore checked again when they are sent.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use wattle_run::ports::lease::{Lease, Leased};
use wattle_run::ports::store::StoreError;

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsent {
    /// Another host has the lease of the thread.
    #[error(transparent)]
    Fenced(StoreError),
    /// The server does not know the session of the message, so it has not executed the message. `rmcp` has opened
    /// another session.
    #[error("the server no longer knows the session")]
    Forgotten,
}

impl From<Unsent> for io::Error {
    fn from(reason: Unsent) -> Self {
        Self::other(reason)
    }
}

/// The condition under which a message may be sent: this host has the lease of the thread. Clones share it. The default
/// permits every message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Permit(Arc<Mutex<Terms>>);

/// State of a permit.
#[derive(Debug, Default)]
struct Terms {
    leased: Leased,
    is_revoked: bool,
}

impl Permit {
    /// Returns a permit that requires a lease.
    pub(crate) fn under(leased: &Leased) -> Self {
        Self(Arc::new(Mutex::new(Terms { leased: leased.clone(), is_revoked: false })))
    }

    /// Removes the lease requirement. Called when the server has received the message.
    pub(crate) fn lift(&self) {
        self.terms().leased = Leased::default();
    }

    /// Forbids the message, since the server did not know its session. `rmcp` would send it again in another session,
    /// even without a lease requirement.
    pub(crate) fn revoke(&self) {
        self.terms().is_revoked = true;
    }

    /// Sends a message while the permit allows it.
    ///
    /// # Errors
    ///
    /// Returns [`Unsent`] inside of a transport error.
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
        // The server may have received the message meanwhile, which lifts the requirement.
        if self.is_sure() { Ok(()) } else { proven }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn revoked_message_is_not_sent() {
        let permit = Permit::default();
        assert!(permit.hold(pin!(async {})).await.is_ok());
        permit.clone().revoke();
        permit.lift();
        let refused = permit.hold(pin!(async {})).await.unwrap_err();
        let reason = refused.get_ref().and_then(|reason| reason.downcast_ref::<Unsent>());
        assert!(matches!(reason, Some(Unsent::Forgotten)), "{refused:?}");
    }
}
