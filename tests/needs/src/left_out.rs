//! Tests that are left out: the reason, the record, and the refusal with `WATTLE_REQUIRE=all`.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Result, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fmt, thread};

/// The environment variable with the path of the record. Without it nothing is recorded.
pub const RECORD: &str = "WATTLE_LEFT_OUT";

/// The environment variable that is `all` where no test may be left out.
pub const REQUIRE: &str = "WATTLE_REQUIRE";

/// What a machine lacks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// The thing, such as `Chromium`.
    pub what: String,
    /// The command that provides it.
    pub remedy: String,
}

impl Missing {
    /// A thing and the command that provides it.
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

/// A test that was left out, in whole or in part. The record has it already.
///
/// Only a [`Missing`] becomes one, so no test ends early without a reason that is counted.
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

/// Whether `WATTLE_REQUIRE=all`: every test must run.
pub fn requires_all() -> bool {
    variable(REQUIRE).is_some_and(|value| value == "all")
}

/// One test that was left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// What the machine lacked.
    pub missing: Missing,
    /// The test.
    pub test: String,
}

/// Appends a test to a record. Tests of several processes do so at the same time: the line is one
/// write.
///
/// # Errors
///
/// Those of the file system.
pub fn note(record: &Path, missing: &Missing, test: &str) -> Result<()> {
    let line = format!("{}\t{}\t{test}\n", missing.what, missing.remedy);
    if let Some(folder) = record.parent() {
        fs::create_dir_all(folder)?;
    }
    OpenOptions::new().create(true).append(true).open(record)?.write_all(line.as_bytes())
}

/// The tests of a record, each once for each thing that it lacks. There are none without a record.
///
/// # Errors
///
/// Those of the file system.
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

/// The test that runs: nextest says its name; libtest names the thread after it.
fn running_test() -> String {
    let nextest = variable("NEXTEST_BINARY_ID").zip(variable("NEXTEST_TEST_NAME"));
    let (binary, test) = nextest.unwrap_or_else(|| {
        let program = env::current_exe().unwrap_or_default();
        let binary = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        (binary, thread::current().name().unwrap_or("a thread without a name").to_owned())
    });
    format!("{binary} {test}")
}

#[expect(clippy::disallowed_methods, reason = "the runner of the tests says this by environment")]
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}
