//! Decides whether a message with an effect may be sent.
//!
//! Calls and elicitation answers wait in `rmcp` for their turn and for a connection, outside of the
//! engine's control. The lease of the thread is therefore checked again when `rmcp` sends the
//! message.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use wattle_run::ports::lease::{CallLease, Lease};
use wattle_run::ports::store::StoreError;

/// The reason why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnsentReason {
    /// Another host has the lease of the thread.
    #[error(transparent)]
    Fenced(StoreError),
    /// The server does not know the session of the message, so it has not executed the message.
    /// `rmcp` has opened another session.
    #[error("the server no longer knows the session")]
    UnknownSession,
}

impl From<UnsentReason> for io::Error {
    fn from(reason: UnsentReason) -> Self {
        Self::other(reason)
    }
}

/// The condition under which a message may be sent: this host has the lease of the thread. Clones
/// share the condition. The default permits every message.
#[derive(Clone, Debug, Default)]
pub(crate) struct SendPermit(Arc<Mutex<PermitState>>);

/// State of a permit.
#[derive(Debug, Default)]
struct PermitState {
    leased: CallLease,
    is_revoked: bool,
}

impl SendPermit {
    /// Returns a permit that requires a lease.
    pub(crate) fn with_lease(leased: &CallLease) -> Self {
        Self(Arc::new(Mutex::new(PermitState { leased: leased.clone(), is_revoked: false })))
    }

    /// Removes the lease requirement. The caller must call this method only when the server has
    /// received the message.
    pub(crate) fn remove_lease(&self) {
        self.state().leased = CallLease::default();
    }

    /// Forbids the message, because the server did not know the session of the message. Otherwise
    /// `rmcp` would send the message again in another session, even if the permit requires no
    /// lease.
    pub(crate) fn revoke(&self) {
        self.state().is_revoked = true;
    }

    /// Sends a message while the permit allows it.
    ///
    /// # Errors
    ///
    /// Returns [`UnsentReason`] inside of a transport error.
    pub(crate) async fn send<T>(
        &self,
        sent: Pin<&mut (impl Future<Output = T> + Send + ?Sized)>,
    ) -> io::Result<T> {
        if self.is_revoked() {
            return Err(UnsentReason::UnknownSession.into());
        }
        let permitted = CallLease::new(Arc::new(self.clone()));
        permitted.poll_while_valid(sent).await.map_err(|fenced| UnsentReason::Fenced(fenced).into())
    }

    /// Locks the state. Ignores poisoning, because no code that holds this lock can panic.
    fn state(&self) -> MutexGuard<'_, PermitState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_revoked(&self) -> bool {
        self.state().is_revoked
    }

    fn leased(&self) -> CallLease {
        self.state().leased.clone()
    }
}

#[async_trait]
impl Lease for SendPermit {
    fn is_locally_valid(&self) -> bool {
        self.leased().is_locally_valid()
    }

    async fn confirm(&self) -> Result<(), StoreError> {
        let proven = self.leased().confirm().await;
        // The server may have received the message during the check, in which case the lease is not
        // required any more.
        if self.is_locally_valid() { Ok(()) } else { proven }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn revoked_message_is_not_sent() {
        let permit = SendPermit::default();
        assert!(permit.send(pin!(async {})).await.is_ok());
        permit.clone().revoke();
        permit.remove_lease();
        let refused = permit.send(pin!(async {})).await.unwrap_err();
        let reason = refused.get_ref().and_then(|reason| reason.downcast_ref::<UnsentReason>());
        assert!(matches!(reason, Some(UnsentReason::UnknownSession)), "{refused:?}");
    }
}
