//! Frames round-trip, and damaged frames are `Corrupt` errors.

use serde_json::{Value, json};

use super::*;
use crate::codec::Packer;
use crate::disk::delta::ChainStats;

const LINK: DeltaLink = DeltaLink {
    base: CheckpointId(2),
    frame_no: 5,
    keep: 4,
    chain: ChainStats { items: 5, full_bytes: 60, deltas: 1, delta_bytes: 9 },
};

fn part(name: &str, link: Option<DeltaLink>, value: &Value) -> ChannelPart {
    let packed = Packer::default().pack(value).unwrap();
    ChannelPart { channel: ChannelName::new(name).unwrap(), link, packed }
}

fn value(frame: &Frame, name: &str) -> Result<Option<Value>, StoreError> {
    let part = frame.part(&ChannelName::new(name).unwrap())?;
    part.map(|part| unpack("value", part.packed)).transpose()
}

fn sample(value: &Value) -> (Header, Body) {
    let mut packer = Packer::default();
    let header = Header {
        previous: 7,
        base: Some(CheckpointId(0)),
        checkpoint: Some(CheckpointId(3)),
        after_seq: 4,
        last_seq: 6,
        namespace: "child".into(),
        seal: Some(Digest::of(b"seal")),
        ..Header::default()
    };
    let body = Body {
        events: packer.pack(&[1, 2]).unwrap(),
        meta: packer.pack("meta").unwrap(),
        frame_index: FrameIndex::from([(CheckpointId(2), 5)]),
        parts: vec![part("a", Some(LINK), &json!(["small"])), part("b", None, value)],
    };
    (header, body)
}

fn check(value: &Value) {
    let (header, body) = sample(value);
    let chunks = write(header, &body, 9);
    let read = Header::read(9, &chunks[0]).unwrap();
    assert!(Header::read(8, &chunks[0]).is_err(), "another entry");
    assert_eq!(read.chunks as usize, chunks.len());
    assert_eq!((read.previous, read.base), (7, Some(CheckpointId(0))));
    assert_eq!((read.namespace.as_str(), read.seal), ("child", Some(Digest::of(b"seal"))));
    let frame = Frame::new(read, chunks.concat()).unwrap();
    assert_eq!(frame.events::<u32>().unwrap(), [1, 2]);
    assert_eq!(frame.meta::<String>().unwrap(), "meta");
    assert_eq!(frame.frame_index().unwrap(), body.frame_index);
    assert_eq!(super::tests::value(&frame, "b").unwrap().as_ref(), Some(value));
    assert_eq!(super::tests::value(&frame, "c").unwrap(), None);
    let tail = frame.part(&ChannelName::new("a").unwrap()).unwrap().unwrap();
    assert_eq!(tail.link, Some(LINK));
}

#[test]
fn frames_round_trip() {
    check(&json!(1));
    let noise: String =
        (0..200_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_string()).collect();
    check(&json!(noise));
}

#[test]
fn chunks_fill_powers_of_two_of_pages() {
    assert_eq!(chunk_sizes(100), [100]);
    assert_eq!(chunk_sizes(10_000), [8128, 1872]);
    for total in [4032, 4033, 8127, 8128, 8129, 65_472, 1_000_000] {
        let sizes = chunk_sizes(total);
        assert_eq!(sizes.iter().sum::<usize>(), total);
        let pages: usize = sizes.iter().map(|size| (size + 64).next_power_of_two()).sum();
        assert!(pages <= total + 4096 + 64 * sizes.len(), "{total} takes {pages}");
    }
}

#[test]
fn truncated_frames_are_corrupt_errors() {
    let (header, body) = sample(&json!("x"));
    let bytes = write(header, &body, 9).concat();
    for length in 0..bytes.len() {
        let whole = Header::read(9, &bytes[..length]).and_then(|header| {
            let frame = Frame::new(header, bytes[..length].to_vec())?;
            frame.events::<u32>()?;
            frame.meta::<String>()?;
            value(&frame, "b")
        });
        assert!(matches!(whole, Err(StoreError::Corrupt { .. }) | Ok(None)), "{length}");
    }
}

#[test]
fn checksums_detect_every_changed_byte() {
    let (header, body) = sample(&json!("x"));
    let bytes = write(header, &body, 9).concat();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let whole = Header::read(9, &damaged).and_then(|header| {
            let frame = Frame::new(header, damaged)?;
            frame.meta::<String>()?;
            value(&frame, "b")
        });
        assert!(matches!(whole, Err(StoreError::Corrupt { .. })), "{at}");
    }
}
