//! What a service rejects, and what it accepts instead.
//!
//! A request that a service rejects is sent again in another form. The form that the service
//! accepted is remembered until the host stops, so that later requests do not begin with a form
//! that the service rejects.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wattle_graph::id::Digest;

/// Maximum rejections of one kind that are remembered for one provider. All are forgotten when
/// there are more, because an app may keep generating new schemas. A forgotten one costs one more
/// request that the service rejects.
pub(super) const MAX_REJECTIONS: usize = 1_000;

/// Accepted forms by the digest of what the service rejected.
#[derive(Debug, Default)]
pub(super) struct Rejections<F>(Mutex<HashMap<Digest, F>>);

impl<F: Copy + PartialEq> Rejections<F> {
    /// Returns the form that the service accepted in place of what has the digest. Calls `digest`
    /// only if the service rejected anything: most services do not, and the digest of a large
    /// schema takes time.
    pub(super) fn accepted(&self, digest: impl FnOnce() -> Digest) -> Option<F> {
        if self.forms().is_empty() {
            return None;
        }
        let digest = digest();
        self.forms().get(&digest).copied()
    }

    /// Remembers the form that the service accepted. Returns false if it was known.
    pub(super) fn remember(&self, digest: Digest, accepted: F) -> bool {
        self.update(digest, |_| accepted) != Some(accepted)
    }

    /// Remembers the form that `update` returns for the known form. Returns the known form. Other
    /// updates wait until this one ends.
    pub(super) fn update(&self, digest: Digest, update: impl FnOnce(Option<F>) -> F) -> Option<F> {
        let mut forms = self.forms();
        if forms.len() >= MAX_REJECTIONS && !forms.contains_key(&digest) {
            forms.clear();
        }
        let updated = update(forms.get(&digest).copied());
        forms.insert(digest, updated)
    }

    fn forms(&self) -> MutexGuard<'_, HashMap<Digest, F>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: usize) -> Digest {
        Digest::of(number.to_string().as_bytes())
    }

    #[test]
    fn all_rejections_are_forgotten_when_there_are_too_many() {
        let rejections = Rejections::default();
        for number in 0..MAX_REJECTIONS {
            assert!(rejections.remember(digest(number), number));
        }
        assert!(!rejections.remember(digest(0), 0), "it is known");
        assert_eq!(rejections.accepted(|| digest(0)), Some(0));
        assert!(rejections.remember(digest(MAX_REJECTIONS), 7));
        assert_eq!(rejections.accepted(|| digest(0)), None);
        assert_eq!(rejections.accepted(|| digest(MAX_REJECTIONS)), Some(7));
    }

    #[test]
    fn update_begins_with_the_known_form() {
        let rejections = Rejections::default();
        let add = |number: usize| move |known: Option<usize>| known.unwrap_or_default() | number;
        assert_eq!(rejections.update(digest(0), add(1)), None);
        assert_eq!(rejections.update(digest(0), add(4)), Some(1));
        assert_eq!(rejections.accepted(|| digest(0)), Some(5));
    }
}
