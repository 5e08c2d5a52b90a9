//! The program that libFuzzer drives. Its last argument is the name of the target. The argument
//! `-ignore_remaining_args=1` before it hides the name from libFuzzer.
#![no_main]

use std::sync::OnceLock;

use wattle_fuzz::{TARGETS, Target, target};

static TARGET: OnceLock<Target> = OnceLock::new();

/// Returns the target that the command line names.
#[expect(clippy::print_stderr, reason = "errors of arguments are printed")]
fn chosen() -> Target {
    let name = std::env::args().next_back().unwrap_or_default();
    target(&name).unwrap_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("unknown target `{name}`; the last argument must be one of {}", names.join(", "));
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
