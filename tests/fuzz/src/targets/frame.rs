//! Frames of the store's log. Invalid bytes are a typed error. A parsed frame is equal after a
//! round trip, and a change of any byte is detected.

use wattle_run::ports::store::StoreError;
use wattle_store::disk::decoded_frame::DecodedFrame;

/// The number of the log entry that the frame belongs to.
const NUMBER: u64 = 9;

/// Reads a frame.
pub fn run(bytes: &[u8]) {
    let entry = match DecodedFrame::read(NUMBER, bytes) {
        Ok(entry) => entry,
        Err(StoreError::Corrupt { .. }) => return,
        Err(error) => panic!("expected `Corrupt`: {error}"),
    };
    let mut written = entry.write(NUMBER).expect("what was read can be written");
    let again = DecodedFrame::read(NUMBER, &written).expect("what was written can be read");
    assert_eq!(entry, again);
    assert!(
        DecodedFrame::read(NUMBER + 1, &written).is_err(),
        "the frame is read at another entry"
    );
    // The input determines which bit changes, so that many executions cover all of them.
    let seed = bytes
        .iter()
        .fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let place = seed % written.len();
    written[place] ^= 1 << (seed / written.len() % 8);
    assert!(
        DecodedFrame::read(NUMBER, &written).is_err(),
        "a change of byte {place} is not detected"
    );
}
