//! The reducer `append`, which adds items to an array.

use serde_json::Value;

use super::{Reduced, list_of};
use crate::checkpoint::{ChannelValue, SharedList};

/// Appends the items of each write that is an array, and any other write as one item. The new list
/// shares the items of the old one.
pub(super) fn reduce(current: Option<&ChannelValue>, writes: &[&Value]) -> Result<Reduced, String> {
    let mut list = list_of(current).ok_or_else(|| "the value is not an array".to_owned())?;
    let unchanged_prefix = current.and_then(ChannelValue::list).map(SharedList::len);
    for write in writes {
        match write {
            Value::Array(more) => list.extend(more.iter().cloned()),
            one => list.extend([Value::clone(one)]),
        }
    }
    Ok(Reduced { value: list.into(), unchanged_prefix })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};
    use serde_json::json;

    use super::*;

    fn write() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<u8>().prop_map(Value::from),
            vec(any::<u8>(), 0..80).prop_map(Value::from)
        ]
    }

    proptest! {
        #[test]
        fn append_takes_the_items_of_an_array(steps in vec(vec(write(), 0..3), 1..6)) {
            let (mut array, mut list) = (Vec::new(), ChannelValue::from(json!([])));
            for writes in steps {
                let unchanged = array.len();
                for write in &writes {
                    match write {
                        Value::Array(items) => array.extend(items.clone()),
                        one => array.push(one.clone()),
                    }
                }
                let made = reduce(Some(&list), &writes.iter().collect::<Vec<_>>()).unwrap();
                prop_assert_eq!(json!(made.value), json!(array));
                prop_assert_eq!(made.unchanged_prefix, Some(unchanged));
                list = made.value;
            }
        }
    }
}
