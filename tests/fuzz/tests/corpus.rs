//! Every target with its seeds, with inputs that failed once, and with changed seeds. Each seed is a
//! file of the target's folder under `corpus`.
//!
//! The changes are random numbers of one fixed seed, so that the same code gets the same inputs.
//! `cargo xtask fuzz` makes up others, and has libFuzzer choose those that reach new code.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail a test too")]

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use wattle_fuzz::{TARGETS, target};
use wattle_needs::setting;

/// Changed seeds for each target, if `WATTLE_CHANGED_SEEDS` does not say another number.
const CHANGED_SEEDS: u32 = 500;

/// Changes of one seed.
const CHANGES: std::ops::Range<usize> = 1..6;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Hands every file of a target's folder to it, and then changed ones. What is printed names the file
/// before a panic.
#[expect(clippy::print_stdout, reason = "shown if the test fails")]
fn replay(name: &str) {
    let target = target(name).unwrap();
    let mut files: Vec<PathBuf> =
        fs::read_dir(corpus().join(name)).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "target `{name}` has no seeds");
    let mut seeds = Vec::new();
    for path in files {
        println!("{}", path.display());
        let bytes = fs::read(&path).unwrap();
        (target.run)(&bytes);
        // What is cut is foreign as well.
        (target.run)(&bytes[..bytes.len() / 2]);
        seeds.push(bytes);
    }
    let cases = setting("WATTLE_CHANGED_SEEDS").unwrap_or(CHANGED_SEEDS);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let run = |Input(bytes)| {
        (target.run)(&bytes);
        Ok(())
    };
    if let Err(failure) = TestRunner::new_with_rng(config, rng).run(&changed(seeds), run) {
        panic!("{failure}");
    }
}

/// Bytes for a target. A failure prints them as Rust writes a string of bytes.
#[derive(Clone)]
struct Input(Vec<u8>);

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// A change of a seed.
#[derive(Clone, Debug)]
enum Change {
    /// One byte gets another value.
    Set(Index, u8),
    /// One bit of a byte is flipped.
    Flip(Index, u8),
    /// Bytes between two places go away.
    Remove(Index, Index),
    /// Bytes between two places come twice.
    Repeat(Index, Index),
    /// Bytes between two places of a seed come in at a place.
    Insert(Index, Vec<u8>, Index, Index),
}

/// Seeds with some changes.
fn changed(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Input> {
    let place = any::<Index>;
    let change = prop_oneof![
        (place(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (place(), 0_u8..8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        (place(), place()).prop_map(|(from, to)| Change::Remove(from, to)),
        (place(), place()).prop_map(|(from, to)| Change::Repeat(from, to)),
        (place(), select(seeds.clone()), place(), place())
            .prop_map(|(at, other, from, to)| Change::Insert(at, other, from, to)),
    ];
    (select(seeds), prop::collection::vec(change, CHANGES)).prop_map(|(mut bytes, changes)| {
        for change in changes {
            make(change, &mut bytes);
        }
        Input(bytes)
    })
}

fn make(change: Change, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    match change {
        Change::Set(at, byte) => *at.get_mut(bytes) = byte,
        Change::Flip(at, bit) => *at.get_mut(bytes) ^= 1 << bit,
        Change::Remove(from, to) => drop(bytes.drain(between(from, to, bytes.len()))),
        Change::Repeat(from, to) => {
            let range = between(from, to, bytes.len());
            let again = bytes[range.clone()].to_vec();
            bytes.splice(range.start..range.start, again);
        }
        Change::Insert(at, other, from, to) => {
            let piece = &other[between(from, to, other.len())];
            let at = at.index(bytes.len());
            bytes.splice(at..at, piece.iter().copied());
        }
    }
}

fn between(one: Index, other: Index, length: usize) -> std::ops::Range<usize> {
    let places = length + 1;
    let (one, other) = (one.index(places), other.index(places));
    one.min(other)..one.max(other)
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn every_target_has_a_test_and_a_folder() {
            let tested = [$(stringify!($name)),*];
            let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(tested.as_slice(), known);
            let mut folders: Vec<String> = fs::read_dir(corpus())
                .unwrap()
                .map(|folder| folder.unwrap().file_name().into_string().unwrap())
                .collect();
            folders.sort();
            assert_eq!(folders, known);
        }
    };
}

targets!(app cel component events export frame graph mcp provider request schema sql state store stream wit);
