//! Tests of [`SharedList`].

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::Index;
use serde_json::json;

use super::index::ChunkIndex;
use super::*;
use crate::weight::SHARED_ITEM_BYTES;

/// Granularity of allocators, in bytes.
const ALIGNMENT: usize = 16;

fn list(items: &[u8]) -> SharedList {
    items.iter().map(|item| json!(item)).collect()
}

#[test]
fn an_item_takes_no_more_memory_than_the_limits_count_for_it() {
    let counts = 2 * size_of::<usize>();
    let shared = (counts + size_of::<Value>()).next_multiple_of(ALIGNMENT);
    let chunk = (counts + size_of::<Chunk>()).next_multiple_of(ALIGNMENT)
        + size_of::<ChunkIndex>().next_multiple_of(ALIGNMENT);
    let result = size_of::<(u64, u8)>();
    let all = size_of::<Item>() + shared + result + chunk.div_ceil(CHUNK_ITEMS);
    assert!(all as u64 <= VALUE_BYTES + SHARED_ITEM_BYTES);
}

#[test]
fn a_longer_version_shares_all_items() {
    for items in [0, 10, 64, 2_000] {
        let old: SharedList = (0..items).map(|n| json!({ "n": n })).collect();
        let mut new = old.clone();
        new.extend([json!("new")]);
        assert_eq!((new.len(), new.unshared_with(&old)), (items + 1, 1));
        let copied = new.chunks.iter().zip(&old.chunks).filter(|(new, old)| !Arc::ptr_eq(new, old));
        assert!(copied.count() <= 1, "one chunk has new pointers");
    }
}

#[test]
fn a_changed_list_is_not_known_to_have_unique_ids() {
    let known = || list(&[1, 2]).with_unique_ids();
    let item = || Arc::new(json!(3));
    assert!(known().has_unique_ids() && known().without(&BTreeSet::new()).has_unique_ids());
    let (mut longer, mut other) = (known(), known());
    longer.push(item());
    other.set(0, item());
    for changed in [longer, other, known().without(&BTreeSet::from([1]))] {
        assert!(!changed.has_unique_ids(), "{changed:?}");
    }
}

#[test]
fn an_index_is_that_of_the_present_items() {
    let mut changed = list(&[1, 2]);
    assert!(!changed.is_indexed() && list(&[]).is_indexed());
    let first = changed.digest();
    assert!(changed.is_indexed());
    // No other version shares the chunk, so it is changed in place.
    changed.push(Arc::new(json!(3)));
    assert!(!changed.is_indexed());
    assert_eq!(changed.digest(), list(&[1, 2, 3]).digest());
    changed.set(0, Arc::new(json!(4)));
    assert!(!changed.is_indexed());
    assert_eq!(changed.digest(), list(&[4, 2, 3]).digest());
    let old = changed.clone();
    let shorter = changed.without(&BTreeSet::from([0, 2]));
    assert!(old.is_indexed() && !shorter.is_indexed());
    assert_eq!(shorter.digest(), list(&[2]).digest());
    assert_ne!(shorter.digest(), first);
}

#[test]
fn a_longer_version_shares_the_index_of_full_chunks() {
    let old: SharedList = (0..130).map(|n| json!(n)).collect();
    old.digest();
    let mut new = old.clone();
    new.extend([json!("new")]);
    let indexed: Vec<bool> = new.chunks.iter().map(|chunk| chunk.is_indexed()).collect();
    assert_eq!(indexed, [true, true, false]);
    assert_eq!(
        new.unindexed().cloned().collect::<Vec<_>>(),
        [json!(128), json!(129), json!("new")]
    );
    assert!(old.is_indexed());
}

proptest! {
    #[test]
    fn shared_list_reads_and_serializes_as_an_array(
        start in vec(any::<u8>(), 0..150), more in vec(any::<u8>(), 0..150),
        from in 0_usize..320, to in 0_usize..320,
    ) {
        let mut grown = list(&start);
        grown.weight();
        grown.digest();
        grown.extend(list(&more).iter().cloned());
        let array: Vec<u8> = start.iter().chain(&more).copied().collect();
        prop_assert_eq!(grown.len(), array.len());
        prop_assert_eq!(grown.is_empty(), array.is_empty());
        prop_assert_eq!(grown.to_value(), json!(array));
        prop_assert!(grown.is_weighed());
        prop_assert_eq!(grown.weight(), weight(&json!(array)));
        prop_assert_eq!(json!(grown), json!(array));
        prop_assert_eq!(serde_json::to_string(&grown).unwrap(), json!(array).to_string());
        let tail = grown.tail(from).map(|items| json!(items));
        prop_assert_eq!(tail, array.get(from..).map(|items| json!(items)));
        let part = array.iter().enumerate().filter(|(place, _)| (from..to).contains(place));
        let part: Vec<u8> = part.map(|(_, item)| *item).collect();
        prop_assert_eq!(json!(grown.range(from, to).collect::<Vec<_>>()), json!(part));
        prop_assert_eq!(grown.range_weight(from, to), weight(&json!(part)) - VALUE_BYTES);
        prop_assert_eq!(grown.range_weight(0, array.len()), grown.weight() - VALUE_BYTES);
        prop_assert_eq!(grown.digest(), list(&array).digest());
        prop_assert_eq!(grown.digest() == list(&start).digest(), array == start);
        prop_assert_eq!(grown.json_bytes(), json!(array).to_string().len() as u64);
        prop_assert!(grown.is_indexed());
        prop_assert_eq!(grown == list(&start), array == start);
        prop_assert_eq!(&grown, &list(&array));
        prop_assert_eq!(grown.starts_with(&list(&more)), array.starts_with(&more));
        prop_assert!(grown.starts_with(&list(&start)));
    }

    #[test]
    fn items_are_replaced_and_removed_by_position(
        array in vec(any::<u8>(), 1..150),
        changed in vec(any::<Index>(), 0..4),
        removed in vec(any::<Index>(), 0..8),
    ) {
        let old = list(&array);
        let (weighed, digest) = (old.weight(), old.digest());
        let (mut new, mut expected) = (old.clone(), json!(array));
        for place in changed.iter().map(|index| index.index(array.len())) {
            new.set(place, Arc::new(json!("changed")));
            expected[place] = json!("changed");
        }
        prop_assert_eq!(&old, &list(&array), "a version does not change");
        let removed: BTreeSet<usize> =
            removed.iter().map(|index| index.index(array.len())).collect();
        let items = expected.as_array().unwrap().iter().enumerate();
        let kept = items.filter(|(place, _)| !removed.contains(place));
        let kept: SharedList = kept.map(|(_, item)| item.clone()).collect();
        let new = new.without(&removed);
        prop_assert_eq!(&new, &kept);
        prop_assert!(new.is_weighed());
        prop_assert_eq!((new.weight(), old.weight()), (kept.weight(), weighed));
        prop_assert_eq!((new.digest(), old.digest()), (kept.digest(), digest));
        prop_assert_eq!(new.json_bytes(), kept.json_bytes());
    }
}
