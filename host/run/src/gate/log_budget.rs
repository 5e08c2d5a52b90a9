//! The budget of log messages of a guest.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::limit;

/// Log messages of one attempt of a task or of one web handler. The tools that it calls share the
/// budget. It counts each attempt of its own, because a retried task logs everything again.
#[derive(Debug, Default)]
pub(crate) struct LogBudget(Mutex<Usage>);

#[derive(Debug, Default)]
struct Usage {
    messages: u64,
    bytes: u64,
    dropped: u64,
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The message is within the budget.
    Granted,
    /// The message is dropped, as the first one.
    FirstDropped,
    /// The message is dropped, like others before.
    Dropped,
}

impl LogBudget {
    /// Charges a message of `bytes` bytes. Once a message was dropped, all further ones are, so
    /// that a reader of the log knows where it ends.
    pub(crate) fn charge(&self, bytes: u64) -> Admission {
        let mut usage = self.lock();
        let total = usage.bytes.saturating_add(bytes);
        let is_within = usage.dropped == 0
            && usage.messages < limit::LOG_MESSAGES
            && total <= limit::LOG_MESSAGES_BYTES;
        if is_within {
            usage.messages += 1;
            usage.bytes = total;
            return Admission::Granted;
        }
        usage.dropped += 1;
        if usage.dropped == 1 { Admission::FirstDropped } else { Admission::Dropped }
    }

    /// Returns the number of messages that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_beyond_their_number_are_dropped() {
        let budget = LogBudget::default();
        let granted = (0..limit::LOG_MESSAGES).all(|_| budget.charge(1) == Admission::Granted);
        assert!(granted);
        assert_eq!(budget.charge(1), Admission::FirstDropped);
        assert_eq!((budget.charge(0), budget.dropped()), (Admission::Dropped, 2));
    }

    proptest! {
        #[test]
        fn granted_messages_are_within_the_bytes_and_precede_all_dropped_ones(
            sizes in prop::collection::vec(0..=limit::LOG_MESSAGES_BYTES / 4, 1..40),
        ) {
            let budget = LogBudget::default();
            let charged: Vec<_> = sizes.iter().map(|bytes| budget.charge(*bytes)).collect();
            let granted = charged.iter().take_while(|it| **it == Admission::Granted).count();
            prop_assert!(sizes[..granted].iter().sum::<u64>() <= limit::LOG_MESSAGES_BYTES);
            let expected = sizes.iter().scan(0_u64, |total, bytes| {
                *total += bytes;
                Some(*total <= limit::LOG_MESSAGES_BYTES)
            });
            prop_assert_eq!(granted, expected.take_while(|fits| *fits).count());
            let (dropped, rest) = (charged.len() - granted, &charged[granted..]);
            prop_assert_eq!(budget.dropped(), dropped as u64);
            if let Some((first, others)) = rest.split_first() {
                prop_assert_eq!(*first, Admission::FirstDropped);
                prop_assert!(others.iter().all(|it| *it == Admission::Dropped));
            }
        }
    }
}
