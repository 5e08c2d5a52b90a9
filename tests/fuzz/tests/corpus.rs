//! Every target with its seeds, and with inputs that failed once: each is a file of the target's folder
//! under `corpus`.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail a test too")]

use std::fs;
use std::path::{Path, PathBuf};

use wattle_fuzz::{TARGETS, target};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Hands every file of a target's folder to it; what is printed names the file before a panic.
#[expect(clippy::print_stdout, reason = "shown if the test fails")]
fn replay(name: &str) {
    let target = target(name).unwrap();
    let mut files = 0;
    for file in fs::read_dir(corpus().join(name)).unwrap() {
        let path = file.unwrap().path();
        println!("{}", path.display());
        let bytes = fs::read(&path).unwrap();
        (target.run)(&bytes);
        // What is cut is foreign as well.
        (target.run)(&bytes[..bytes.len() / 2]);
        files += 1;
    }
    assert!(files > 0, "target `{name}` has no seeds");
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
