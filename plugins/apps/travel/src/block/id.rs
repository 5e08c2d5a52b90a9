//! Ids of blocks: eight characters that depend only on the video, the position and the title.

use std::collections::HashSet;

/// 64 characters, six bits each.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

/// Number of characters of an id.
const CHARS: u32 = 8;

/// Returns an id that is not in `taken`, and inserts it.
pub(super) fn unique(
    taken: &mut HashSet<String>,
    video_id: &str,
    position: usize,
    title: &str,
) -> String {
    let mut salt = 0_usize;
    loop {
        let id = written(hash(&[video_id, &position.to_string(), title, &salt.to_string()]));
        if taken.insert(id.clone()) {
            return id;
        }
        salt += 1;
    }
}

fn written(hash: u64) -> String {
    let six = |at: u32| (hash >> (at * 6)) as usize & 63;
    (0..CHARS).map(|at| char::from(ALPHABET[six(at)])).collect()
}

/// FNV-1a with a zero byte after every text, mixed by the finalizer of SplitMix64: FNV alone gives
/// texts that differ in their last character similar high bits. The hash protects no secret.
fn hash(texts: &[&str]) -> u64 {
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0]));
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut mixed = bytes.fold(0xcbf2_9ce4_8422_2325, fnv);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::unique;

    #[test]
    fn s3_22_ids_are_short_unique_and_repeatable() {
        let all = || {
            let mut taken = HashSet::new();
            let id = |n: usize| unique(&mut taken, "vid", n % 16, &format!("Title {}", n % 50));
            (0..4_000).map(id).collect::<Vec<_>>()
        };
        let ids = all();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
        assert!(ids.iter().all(|id| id.len() == 8));
        assert_eq!(all(), ids);
    }
}
