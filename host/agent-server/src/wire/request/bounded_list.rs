//! Arrays with a maximum length. The length is checked during parsing, because an item of two bytes
//! of JSON can take hundreds of bytes in memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// Deserializes an array of at most `N` items.
///
/// # Errors
///
/// Returns an error if the array has more than `N` items, or an item is invalid.
pub fn at_most<'de, const N: usize, T, D>(list: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    list.deserialize_seq(AtMost::<N, T>(PhantomData))
}

/// Deserializes an optional array of at most `N` items.
///
/// # Errors
///
/// The errors of [`at_most`].
pub fn at_most_opt<'de, const N: usize, T, D>(list: D) -> Result<Option<Vec<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct BoundedVec<const N: usize, T>(Vec<T>);
    impl<'de, const N: usize, T: Deserialize<'de>> Deserialize<'de> for BoundedVec<N, T> {
        fn deserialize<D: Deserializer<'de>>(list: D) -> Result<Self, D::Error> {
            at_most::<N, T, D>(list).map(Self)
        }
    }
    Ok(Option::<BoundedVec<N, T>>::deserialize(list)?.map(|list| list.0))
}

struct AtMost<const N: usize, T>(PhantomData<T>);

impl<'de, const N: usize, T: Deserialize<'de>> Visitor<'de> for AtMost<N, T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of at most {N} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
        let mut read = Vec::new();
        while let Some(one) = list.next_element()? {
            if read.len() == N {
                return Err(A::Error::invalid_length(N + 1, &self));
            }
            read.push(one);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Lists {
        #[serde(deserialize_with = "at_most::<2, _, _>")]
        own: Vec<u8>,
        #[serde(default, deserialize_with = "at_most_opt::<1, _, _>")]
        more: Option<Vec<u8>>,
    }

    #[test]
    fn list_above_the_maximum_length_is_rejected() {
        let read = |text: &str| serde_json::from_str::<Lists>(text).map(|it| (it.own, it.more));
        assert_eq!(read(r#"{ "own": [1, 2] }"#).unwrap(), (vec![1, 2], None));
        assert_eq!(read(r#"{ "own": [], "more": null }"#).unwrap(), (vec![], None));
        assert_eq!(read(r#"{ "own": [], "more": [1] }"#).unwrap(), (vec![], Some(vec![1])));
        for text in [r#"{ "own": [1, 2, 3] }"#, r#"{ "own": [], "more": [1, 2] }"#] {
            let why = read(text).unwrap_err().to_string();
            assert!(why.contains("an array of at most"), "{why}");
        }
        assert!(read(r#"{ "own": 1 }"#).is_err());
    }
}
