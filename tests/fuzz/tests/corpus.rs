//! Runs every target with its seeds, with inputs that failed once, with mutated seeds, and with a
//! seed that is grown to a large size. Each seed is a file of the target's folder under `corpus`.
//!
//! The mutations use a fixed random seed, so that each execution has the same inputs. `cargo xtask
//! fuzz` generates other inputs and has libFuzzer select those that reach new code.

#![expect(clippy::unwrap_used, reason = "a panic in a helper fails the test that called it")]

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use wattle_fuzz::{TARGETS, target};
use wattle_needs::setting;

/// Mutated seeds for each target. `WATTLE_CHANGED_SEEDS` overrides the number.
const CHANGED_SEEDS: u32 = 500;

/// Targets that start a program in each execution or may wait for a timeout, which get a fraction
/// of the mutated seeds.
const SLOW: &[&str] = &["session", "session_http"];

/// The denominator of that fraction.
const SLOWNESS: u32 = 5;

/// Size of the grown seed, in bytes. It is larger than any seed, so that limits on the work for an
/// input, and on the size of a result, are reached.
const LARGE_BYTES: usize = 1 << 20;

/// Number of mutations of one seed.
const CHANGES: std::ops::Range<usize> = 1..6;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Runs a target with every file of its folder, and then with mutated seeds. It prints the name of
/// a file before its execution, so that the output of a panic names it.
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
        // Truncated inputs are untrusted as well.
        (target.run)(&bytes[..bytes.len() / 2]);
        seeds.push(bytes);
    }
    (target.run)(&grown(&seeds));
    let cases = setting("WATTLE_CHANGED_SEEDS").unwrap_or(CHANGED_SEEDS);
    let cases = if SLOW.contains(&name) { cases / SLOWNESS } else { cases };
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

/// Returns the longest seed, grown to [`LARGE_BYTES`]. One of its lines is repeated or, if it has
/// one line, one of its items, so that the input is still an input of its format.
fn grown(seeds: &[Vec<u8>]) -> Vec<u8> {
    let seed = seeds.iter().max_by_key(|seed| seed.len()).unwrap();
    let between = |mark: u8| {
        let places = || (0..seed.len()).filter(|place| seed[*place] == mark);
        let pieces = places().zip(places().skip(1)).map(|(from, to)| from..to);
        pieces.max_by_key(ExactSizeIterator::len)
    };
    let piece = between(b'\n').or_else(|| between(b',')).unwrap_or(0..seed.len());
    let copies = LARGE_BYTES.saturating_sub(seed.len()) / piece.len().max(1);
    let mut large = seed.clone();
    large.splice(piece.start..piece.start, seed[piece.clone()].repeat(copies));
    large
}

/// Input of a target. A failure prints it as a Rust byte string.
#[derive(Clone)]
struct Input(Vec<u8>);

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// A mutation of a seed.
#[derive(Clone, Debug)]
enum Change {
    /// Replaces one byte.
    Set(Index, u8),
    /// Flips one bit of a byte.
    Flip(Index, u8),
    /// Removes the bytes between two positions.
    Remove(Index, Index),
    /// Duplicates the bytes between two positions.
    Repeat(Index, Index),
    /// Inserts the bytes between two positions of another seed.
    Insert(Index, Vec<u8>, Index, Index),
}

/// Returns a strategy for seeds with mutations.
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

targets!(app blob cel code component events export form frame graph guard history kept mcp memory
    native provider request schema script session session_http sql state store stream structured
    token typed url wasi_http wit);
