//! The program that libFuzzer drives. Its last argument is the name of the target; libFuzzer must
//! not see it, so `-ignore_remaining_args=1` stands before it.
#![no_main]

use std::sync::OnceLock;

use wattle_fuzz::{TARGETS, Target, target};

static TARGET: OnceLock<Target> = OnceLock::new();

/// The target that the command line names.
#[expect(clippy::print_stderr, reason = "a program says what is wrong with its arguments")]
fn chosen() -> Target {
    let name = std::env::args().next_back().unwrap_or_default();
    target(&name).unwrap_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("`{name}` is no target; the last argument must be one of {}", names.join(", "));
        std::process::exit(2)
    })
}

libfuzzer_sys::fuzz_target!(
    init: {
        TARGET.get_or_init(chosen);
    },
    |bytes: &[u8]| {
        (TARGET.get_or_init(chosen).run)(bytes);
    }
);
