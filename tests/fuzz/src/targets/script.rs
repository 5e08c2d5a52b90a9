//! Migrations of PostgreSQL. Each statement has its line, and is one statement on its own. Between
//! the statements are semicolons, whitespace and comments only.

use wattle_sql::parse::postgres_statements;

/// Beginnings of literals, quoted names and comments, in which a semicolon ends no statement.
const OPENINGS: [&str; 5] = ["'", "\"", "$", "--", "/*"];

/// Whitespace of PostgreSQL.
const SPACES: [char; 6] = [' ', '\t', '\n', '\r', '\x0b', '\x0c'];

/// Splits a migration into statements.
pub fn run(bytes: &[u8]) {
    let Ok(migration) = std::str::from_utf8(bytes) else { return };
    let statements = postgres_statements(migration);
    let (mut end, mut line) = (0, 1);
    for (number, (found, text)) in statements.iter().enumerate() {
        let begin = text.as_ptr().addr() - migration.as_ptr().addr();
        let gap = &migration[end..begin];
        let has_semicolon = read_gap(gap).unwrap_or_else(|| panic!("{gap:?} is left out"));
        assert!(has_semicolon || number == 0, "no semicolon is before {text:?}");
        line += migration[end..begin].matches('\n').count();
        assert_eq!(*found, line, "the line of {text:?}");
        line += text.matches('\n').count();
        end = begin + text.len();
        assert_eq!(postgres_statements(text), [(1, *text)], "{text:?} is not one statement");
        assert!(!is_plain(text) || !text.contains(';'), "{text:?} has a semicolon");
    }
    let gap = &migration[end..];
    assert!(read_gap(gap).is_some(), "{gap:?} is left out");
    let texts: Vec<&str> = statements.iter().map(|(_, text)| *text).collect();
    if is_plain(migration) {
        let parts = migration.split(';').map(|part| part.trim_start_matches(SPACES));
        let expected: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        assert_eq!(texts, expected);
    }
    let joined = texts.join(";\n");
    let again: Vec<&str> = postgres_statements(&joined).iter().map(|(_, text)| *text).collect();
    assert_eq!(texts, again);
}

/// Returns true for a text in which each semicolon ends a statement.
fn is_plain(text: &str) -> bool {
    !OPENINGS.iter().any(|opening| text.contains(opening))
}

/// Returns whether a text between two statements has a semicolon. Returns `None` for a text with
/// something other than semicolons, whitespace and comments.
fn read_gap(gap: &str) -> Option<bool> {
    let (mut rest, mut has_semicolon) = (gap, false);
    while let Some(first) = rest.chars().next() {
        rest = if let Some(comment) = rest.strip_prefix("--") {
            comment.trim_start_matches(|sign: char| !matches!(sign, '\n' | '\r'))
        } else if let Some(comment) = rest.strip_prefix("/*") {
            after_comment(comment)?
        } else {
            has_semicolon |= first == ';';
            rest.strip_prefix(SPACES).or_else(|| rest.strip_prefix(';'))?
        };
    }
    Some(has_semicolon)
}

/// Returns the text after a block comment whose first characters are removed. Returns `None` if the
/// comment does not end.
fn after_comment(mut rest: &str) -> Option<&str> {
    let mut depth = 1_usize;
    while depth > 0 {
        let mark = rest.find(['*', '/'])?;
        rest = &rest[mark..];
        if let Some(inside) = rest.strip_prefix("/*") {
            (rest, depth) = (inside, depth + 1);
        } else if let Some(outside) = rest.strip_prefix("*/") {
            (rest, depth) = (outside, depth - 1);
        } else {
            rest = &rest[1..];
        }
    }
    Some(rest)
}
