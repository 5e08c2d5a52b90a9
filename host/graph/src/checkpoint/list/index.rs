//! The index of a chunk: what comparisons of lists and readers of conversations need of its items.

use std::collections::{HashMap, HashSet};

use super::item::{Item, id_hash};
use crate::id::Digest;
use crate::message::{WithoutId, call_ids, is_from_user, result_call_id};

/// Derived from the items of a chunk. Positions are those in the chunk.
pub(super) struct ChunkIndex {
    /// Digest of the items without the ids of messages.
    pub(super) digest: Digest,
    /// Length of the items as JSON text without the ids of messages, in bytes.
    pub(super) bytes: u64,
    /// Number of tool calls with an id.
    pub(super) calls: usize,
    /// The different hashes of the ids of tool calls, sorted.
    pub(super) call_ids: Box<[u64]>,
    /// The tool results: the hash of the id of the call and the position of the message, sorted.
    pub(super) results: Box<[(u64, u8)]>,
    /// The tool calls without a later result in the chunk: the position of the message and that of
    /// the call in its `tool_calls`, sorted. Of calls with the same id, only the first is listed.
    pub(super) open_calls: Box<[(u8, u32)]>,
    /// Position of the last user message.
    pub(super) last_user: Option<u8>,
}

impl ChunkIndex {
    /// Computes the index. The time is that of serializing the items.
    pub(super) fn of(items: &[Item]) -> Self {
        let (digest, bytes) = digest(items);
        let ids = items.iter().flat_map(|item| call_ids(&item.value));
        let mut ids: Vec<u64> = ids.map(|(_, id)| id_hash(id)).collect();
        let calls = ids.len();
        ids.sort_unstable();
        ids.dedup();
        let results = items
            .iter()
            .enumerate()
            .filter_map(|(place, item)| Some((id_hash(result_call_id(&item.value)?), place as u8)));
        let mut results: Vec<(u64, u8)> = results.collect();
        results.sort_unstable();
        let last_user = items.iter().rposition(|item| is_from_user(&item.value));
        Self {
            digest,
            bytes,
            calls,
            call_ids: ids.into(),
            results: results.into(),
            open_calls: open_calls(items).into(),
            last_user: last_user.map(|place| place as u8),
        }
    }
}

/// Returns the digest of items and the length of their JSON texts, without the ids of messages.
/// Each text is hashed with its length, so that different items have different encodings.
fn digest(items: &[Item]) -> (Digest, u64) {
    let (mut hasher, mut text, mut bytes) = (blake3::Hasher::new(), Vec::<u8>::new(), 0);
    for item in items {
        text.clear();
        WithoutId(&item.value).append_text(&mut text).expect("a JSON value has a text");
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(&text);
        bytes += text.len() as u64;
    }
    (Digest::from_bytes(*hasher.finalize().as_bytes()), bytes)
}

fn open_calls(items: &[Item]) -> Vec<(u8, u32)> {
    let (mut with_result, mut open) = (HashSet::<&str>::new(), HashMap::<&str, (u8, u32)>::new());
    for (place, item) in items.iter().enumerate().rev() {
        for (call, id) in call_ids(&item.value) {
            if !with_result.contains(id) {
                open.insert(id, (place as u8, call as u32));
            }
        }
        with_result.extend(result_call_id(&item.value));
    }
    let mut open: Vec<(u8, u32)> = open.into_values().collect();
    open.sort_unstable();
    open
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::checkpoint::SharedList;

    fn talk(first_id: Value, content: &str) -> SharedList {
        let call = json!({ "id": "c", "name": "add", "arguments": { "a": 1.5 } });
        let messages = [
            json!({ "id": first_id, "role": "user", "content": content }),
            json!({ "role": "assistant", "content": null, "id": "m-2", "tool_calls": [call] }),
            json!({ "id": "m-3" }),
            json!("text"),
        ];
        messages.into_iter().collect()
    }

    #[test]
    fn digests_have_a_fixed_form() {
        let numbers = |count: u8| (0..count).map(Value::from).collect::<SharedList>();
        for (list, digest) in [
            (
                talk(json!("m-1"), "grüß \"dich\"\n"),
                "93712bf2bd769198c5c100fa37544fb54053f7af9e57c711b858aa71d4090433",
            ),
            (
                talk(json!(7), "grüß \"dich\"\n"),
                "f8b1290e1eb0800f90fcf57afd421cece6409f52b90e75140162f770aca35c94",
            ),
            (numbers(0), "5cb9af68283eb4c0e5220a566652aeaa86eee7c2cb2339fa4fdbfc41f0c40161"),
            (numbers(64), "f96b26f80d78be3d221cd6223121fe8008b635eda9b2d9c21592bc8ade01894b"),
            (numbers(65), "3a4d561be865b35f50fb60bee754626f0a714f053f8d2572736488609aca4ea9"),
        ] {
            assert_eq!(list.digest().to_hex(), digest, "{list:?}");
        }
    }

    #[test]
    fn only_ids_of_messages_are_not_part_of_a_digest() {
        let one = talk(json!("m-1"), "hi");
        let other_id = talk(json!("a longer id"), "hi");
        assert_ne!(one, other_id);
        assert_eq!((one.digest(), one.json_bytes()), (other_id.digest(), other_id.json_bytes()));
        for other in [talk(json!(7), "hi"), talk(json!("m-1"), "ho")] {
            assert_ne!(one.digest(), other.digest());
        }
        let reversed: SharedList = [json!("text"), json!({})].into_iter().collect();
        let items: SharedList = [json!({ "id": "m" }), json!("text")].into_iter().collect();
        assert_ne!(items.digest(), reversed.digest());
    }
}
