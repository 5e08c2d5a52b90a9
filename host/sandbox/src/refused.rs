//! Components that cannot be compiled.

use std::collections::{HashMap, VecDeque};

use wattle_graph::id::Digest;

use crate::load::Rejection;

/// Maximum number of remembered components. Each takes about two kilobytes.
const MAX_COMPONENTS: usize = 1_000;

/// Digests of components whose compilation failed, each with its rejection. The sandbox does not
/// compile these components again: a component can keep a compiler busy for minutes, and each
/// reload of the plugins reads all components.
#[derive(Default)]
pub(crate) struct RefusedComponents {
    rejections: HashMap<Digest, Rejection>,
    /// The digests, oldest first.
    order: VecDeque<Digest>,
}

impl RefusedComponents {
    /// Returns the rejection of a component; `None` if the component was not refused or was
    /// forgotten.
    pub(crate) fn get(&self, digest: Digest) -> Option<Rejection> {
        self.rejections.get(&digest).cloned()
    }

    /// Remembers the rejection of a component. Forgets the oldest component if there are too many.
    pub(crate) fn insert(&mut self, digest: Digest, rejection: Rejection) {
        if self.rejections.insert(digest, rejection).is_some() {
            return;
        }
        self.order.push_back(digest);
        if self.order.len() > MAX_COMPONENTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.rejections.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::rejection::invalid;

    #[test]
    fn the_newest_components_are_remembered() {
        let digest = |number: usize| Digest::of(&number.to_le_bytes());
        let mut refused = RefusedComponents::default();
        for number in 0..=MAX_COMPONENTS {
            refused.insert(digest(number), invalid("bad"));
            refused.insert(digest(number), invalid("worse"));
        }
        assert_eq!((refused.rejections.len(), refused.order.len()), (1_000, 1_000));
        assert_eq!(refused.get(digest(0)), None);
        assert_eq!(refused.get(digest(1)), Some(invalid("worse")));
    }
}
