//! A frame of the store's log. Bytes that are no frame are a typed error. A frame that is read is the
//! same after it was written and read again, and no byte of it may change unnoticed.

use wattle_run::ports::store::StoreError;
use wattle_store::disk::entry::Entry;

/// The entry of the log at which the frame stands.
const NUMBER: u64 = 9;

/// Reads a frame.
pub fn run(bytes: &[u8]) {
    let entry = match Entry::read(NUMBER, bytes) {
        Ok(entry) => entry,
        Err(StoreError::Corrupt { .. }) => return,
        Err(error) => panic!("another error than of damage: {error}"),
    };
    let mut written = entry.write(NUMBER).expect("what was read can be written");
    let again = Entry::read(NUMBER, &written).expect("what was written can be read");
    assert_eq!(entry, again);
    assert!(Entry::read(NUMBER + 1, &written).is_err(), "it stands at another entry");
    // Which byte changes how depends on the input, so that in time each of them does.
    let seed = bytes
        .iter()
        .fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let place = seed % written.len();
    written[place] ^= 1 << (seed / written.len() % 8);
    assert!(Entry::read(NUMBER, &written).is_err(), "a change of byte {place} is not noticed");
}
