//! The named parts of a type, such as the cases of a variant, with a lookup by name.

use std::ops::Deref;

/// A part of a type that has a name.
pub(crate) trait Named {
    fn name(&self) -> &str;
}

impl Named for String {
    fn name(&self) -> &str {
        self
    }
}

impl<T> Named for (String, T) {
    fn name(&self) -> &str {
        &self.0
    }
}

/// The named parts of a type, in the order of the type, with a binary search by name. A linear
/// search could take long: a small list can name a case of a large type many times.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ByName<T> {
    parts: Vec<T>,
    /// The indexes of the parts, sorted by the names of the parts.
    sorted: Vec<usize>,
}

impl<T: Named> ByName<T> {
    /// Returns the part with a name.
    pub(crate) fn named(&self, name: &str) -> Option<&T> {
        let found = self.sorted.binary_search_by(|place| self.parts[*place].name().cmp(name));
        found.ok().map(|found| &self.parts[self.sorted[found]])
    }
}

impl<T: Named> From<Vec<T>> for ByName<T> {
    fn from(parts: Vec<T>) -> Self {
        let mut sorted: Vec<usize> = (0..parts.len()).collect();
        sorted.sort_by(|one, other| parts[*one].name().cmp(parts[*other].name()));
        Self { parts, sorted }
    }
}

impl<T> Deref for ByName<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_order_and_are_found_by_name() {
        let names = ["medium", "large", "small"].map(str::to_owned).to_vec();
        let sizes = ByName::from(names.clone());
        assert_eq!(*sizes, *names);
        for name in &names {
            assert_eq!(sizes.named(name), Some(name));
        }
        assert_eq!(sizes.named("larger"), None);
        let cases = ByName::from(vec![("b".to_owned(), 1), ("a".to_owned(), 2)]);
        assert_eq!(cases.named("a"), Some(&("a".to_owned(), 2)));
        assert_eq!(ByName::<String>::from(Vec::new()).named(""), None);
    }
}
