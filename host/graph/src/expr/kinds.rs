//! Kinds of the values in expressions, and operations that no value of these kinds supports.
//!
//! CEL decides at run time whether an operation supports its operands. [`check::check`] finds
//! the operations that fail for every state. All other operations are accepted: a value of unknown
//! kind counts as having all kinds. [`schema::ValueType`] follows the schema of a channel to the
//! members of its values.

pub(crate) mod check;
mod operation;
pub(crate) mod schema;

use std::fmt;

/// A set of kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kinds(u16);

impl Kinds {
    const NONE: Self = Self(0);
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOL: Self = Self(1 << 1);
    const INT: Self = Self(1 << 2);
    const UINT: Self = Self(1 << 3);
    const DOUBLE: Self = Self(1 << 4);
    pub(crate) const STRING: Self = Self(1 << 5);
    const BYTES: Self = Self(1 << 6);
    pub(crate) const LIST: Self = Self(1 << 7);
    pub(crate) const MAP: Self = Self(1 << 8);
    /// Values that support no operation but a comparison with `==`, such as types.
    const OTHER: Self = Self(1 << 9);
    /// Numbers. A number of the state can have any of these kinds: JSON does not distinguish `1`
    /// from `1.0`, and integers of more than 63 bits are unsigned.
    pub(crate) const NUMBER: Self = Self::INT.or(Self::UINT).or(Self::DOUBLE);
    /// Values of the state.
    pub(crate) const JSON: Self =
        Self::NULL.or(Self::BOOL).or(Self::NUMBER).or(Self::STRING).or(Self::LIST).or(Self::MAP);
    /// Values of which nothing is known.
    pub(crate) const ANY: Self = Self::JSON.or(Self::BYTES).or(Self::OTHER);

    /// Returns the kinds of both sets.
    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the kinds that are in both sets.
    const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns true if the two sets have a kind in common.
    fn meets(self, other: Self) -> bool {
        self.and(other) != Self::NONE
    }

    /// Returns true if the set excludes some values of the state.
    pub(crate) fn is_known(self) -> bool {
        self.and(Self::JSON) != Self::JSON
    }
}

/// Lists the kinds. `null` is listed only if it is the only kind, because every channel can be
/// without a value.
impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Kinds, &str); 9] = [
            (Kinds::BOOL, "bool"),
            (Kinds::NUMBER, "number"),
            (Kinds::INT, "int"),
            (Kinds::UINT, "uint"),
            (Kinds::DOUBLE, "double"),
            (Kinds::STRING, "string"),
            (Kinds::BYTES, "bytes"),
            (Kinds::LIST, "list"),
            (Kinds::MAP, "map"),
        ];
        if !self.is_known() {
            return f.write_str("any value");
        }
        let mut left = *self;
        let mut names = Vec::new();
        for (kinds, name) in NAMES {
            if left.and(kinds) == kinds {
                left = Self(left.0 & !kinds.0);
                names.push(name);
            }
        }
        match (names.is_empty(), left.meets(Self::OTHER)) {
            (true, true) => f.write_str("type"),
            (true, false) => f.write_str("null"),
            (false, _) => f.write_str(&names.join(" or ")),
        }
    }
}

#[cfg(test)]
mod tests;
