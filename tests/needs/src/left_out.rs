//! Tests that are left out: the reason, the record, and the panic with `WATTLE_REQUIRE=all`.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Result, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fmt, thread};

/// The environment variable with the path of the record. If it is not set, nothing is recorded.
pub const RECORD: &str = "WATTLE_LEFT_OUT";

/// The environment variable that has the value `all` if no test may be left out.
pub const REQUIRE: &str = "WATTLE_REQUIRE";

/// A program or file that the machine lacks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// The missing thing, such as `Chromium`.
    pub what: String,
    /// The command that provides it.
    pub remedy: String,
}

impl Missing {
    /// Creates an error from the missing thing and the command that provides it.
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

impl std::error::Error for Missing {}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is missing; `{}` provides it", self.what, self.remedy)
    }
}

/// A test that was left out, in whole or in part, and that is recorded.
///
/// Only a [`Missing`] converts into this type, so no test ends early without a recorded reason.
#[derive(Debug)]
#[must_use = "a test that is left out ends with `need!`"]
pub struct LeftOut(());

/// Records the running test.
///
/// # Panics
///
/// With `WATTLE_REQUIRE=all`, or if the record cannot be written.
impl From<Missing> for LeftOut {
    #[track_caller]
    fn from(missing: Missing) -> Self {
        assert!(!requires_all(), "{missing}. With `WATTLE_REQUIRE=all` no test is left out");
        if let Some(record) = variable(RECORD).map(PathBuf::from) {
            let written = note(&record, &missing, &running_test());
            assert!(written.is_ok(), "cannot write {}: {written:?}", record.display());
        }
        Self(())
    }
}

/// Returns whether `WATTLE_REQUIRE=all` is set, so that every test must run.
pub fn requires_all() -> bool {
    variable(REQUIRE).is_some_and(|value| value == "all")
}

/// An entry of the record: one test that was left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// The thing that the machine lacks.
    pub missing: Missing,
    /// The name of the test.
    pub test: String,
}

/// Appends a test to a record. Several processes may append concurrently, because each entry is a
/// single write.
///
/// # Errors
///
/// I/O errors of the file system.
pub fn note(record: &Path, missing: &Missing, test: &str) -> Result<()> {
    let line = format!("{}\t{}\t{test}\n", missing.what, missing.remedy);
    if let Some(folder) = record.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new().create(true).append(true).open(record)?.write_all(line.as_bytes())
}

/// Returns the entries of a record without duplicates. A record that does not exist has no entries.
///
/// # Errors
///
/// I/O errors of the file system.
pub fn lines(record: &Path) -> Result<BTreeSet<Line>> {
    let text = match fs::read_to_string(record) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let line = |line: &str| {
        let mut fields = line.splitn(3, '\t').map(str::to_owned);
        let missing = Missing { what: fields.next()?, remedy: fields.next()? };
        Some(Line { missing, test: fields.next()? })
    };
    Ok(text.lines().filter_map(line).collect())
}

/// Returns the name of the running test. Nextest sets it in the environment; libtest names the
/// thread after the test.
fn running_test() -> String {
    let nextest = variable("NEXTEST_BINARY_ID").zip(variable("NEXTEST_TEST_NAME"));
    let (binary, test) = nextest.unwrap_or_else(|| {
        let program = env::current_exe().unwrap_or_default();
        let binary = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        (binary, thread::current().name().unwrap_or("a thread without a name").to_owned())
    });
    format!("{binary} {test}")
}

#[expect(clippy::disallowed_methods, reason = "the test runner passes its settings by environment")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}
