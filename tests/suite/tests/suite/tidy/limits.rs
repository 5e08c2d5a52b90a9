//! Tests that the page about security names every limit of the files that collect limits.
//!
//! These files are called `limit.rs` or `limits.rs`. The last column of the page's table names
//! their constants that other files use, so that no limit is added, renamed or removed without its
//! row.

use std::collections::BTreeSet;
use std::fs;

use wattle_suite::guests::root;

use super::{product, sources};

/// The page with the table.
const PAGE: &str = "host/docs/security.md";

/// The first line of the table.
const HEAD: &str = "| what | limit | set by | constants |\n";

/// The column of the constants. The text before the first `|` of a row counts as a column.
const COLUMN: usize = 4;

/// Constants without a row, each with the reason.
const WITHOUT_ROW: &[(&str, &str)] = &[
    ("ACCEPT_PAUSE", "a pause of the host after an error of the system"),
    ("CERTIFICATE_PERIOD", "how often the host looks at files of the operator"),
    ("CLOSED_AT_ONCE", "how many idle connections the host ends in one pass"),
    ("CLOSE_GRACE", "how long the graceful shutdown of a connection over a limit may take"),
    ("KEY_RELOAD_RETRY_MS", "a pause of the host after an error of its store"),
    ("KEY_USE_INTERVAL_MS", "how often the host notes the use of a key"),
    ("KEY_USE_TTL_MS", "how long the host remembers the use of a key"),
    ("MENTIONED_PAGE", "a page of a list that `THREAD_BLOBS` bounds"),
    ("METER_SLOT_MS", "the resolution of a measure, not its bound"),
    ("NOTE_PERIOD", "how often the host repeats a message in its log"),
    ("RETRY_AFTER_SECONDS", "advice to clients in `retry-after`"),
    ("SHORT_JSON_BYTES", "where long work begins, not its bound"),
];

#[test]
fn every_limit_has_a_row() {
    let (collected, named) = (collected(), named());
    let missing: Vec<&String> = collected
        .iter()
        .filter(|name| !named.contains(*name) && !is_without_row(name.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "{missing:?} are limits without a row: add one to the table of {PAGE} that names the \
         constant in its last column"
    );
}

#[test]
fn every_row_and_exception_names_a_limit() {
    let (collected, named) = (collected(), named());
    let unknown: Vec<&String> = named.difference(&collected).collect();
    assert!(unknown.is_empty(), "{PAGE} names {unknown:?}, which no `limit.rs` has");
    for (name, reason) in WITHOUT_ROW {
        assert!(collected.contains(*name), "{name} is no limit any more: remove its exception");
        assert!(!named.contains(*name), "{name} has a row, and an exception: {reason}");
    }
}

#[test]
fn constants_and_the_names_of_a_table_are_read() {
    let code = "pub const A_1: u64 = 1;\npub(super) const B: (usize, usize) = (3, 4);\n\
                const OWN: u64 = 2;\npub const fn make() {}\n    pub const INNER: u8 = 1;\n";
    assert_eq!(constants(code), set(&["A_1", "B"]));
    let page = format!(
        "`NO`\n{HEAD}|---|---|---|---|\n| **Group** | | `limit.rs` |\n| one | 1 | grant `x` | `A_1` |\n\
         | `two` | 2 | | `B` `C` |\n\n| `NO` | | | `NO` |\n"
    );
    assert_eq!(names(&page), set(&["A_1", "B", "C"]));
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn is_without_row(name: &str) -> bool {
    WITHOUT_ROW.iter().any(|(known, _)| *known == name)
}

/// Returns the constants of all files that collect limits.
fn collected() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in sources("host") {
        let path = file.strip_prefix(root()).unwrap();
        let collects = path.ends_with("limit.rs") || path.ends_with("limits.rs");
        if collects && path.components().any(|part| part.as_os_str() == "src") {
            found.extend(constants(product(&fs::read_to_string(&file).unwrap())));
        }
    }
    assert!(found.contains("SCHEMA_STEPS") && found.contains("HOST_CALLS"), "{found:?}");
    found
}

/// Returns the constants of a file that other files can use.
fn constants(text: &str) -> BTreeSet<String> {
    let of_line = |line: &str| {
        let (visibility, item) = line.split_once("const ")?;
        let (name, _) = item.split_once(':')?;
        let is_name = name
            .chars()
            .all(|letter| letter.is_ascii_uppercase() || letter == '_' || letter.is_ascii_digit());
        (visibility.starts_with("pub") && is_name).then(|| name.to_owned())
    };
    text.lines().filter_map(of_line).collect()
}

/// Returns the constants that the page names.
fn named() -> BTreeSet<String> {
    names(&fs::read_to_string(root().join(PAGE)).unwrap())
}

/// Returns the constants in the last column of the table of a page.
fn names(page: &str) -> BTreeSet<String> {
    let (_, table) = page.split_once(HEAD).expect("the table of limits");
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(COLUMN));
    // Every second part is between backticks.
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}
