//! Removes what models put around a statement, and replaces MySQL's quotes.

use std::collections::BTreeSet;

use sqlparser::tokenizer::{Location, Token};
use wattle_plugin::sql::Dialect;

use crate::statement::Refusal;
use crate::statement::parse::tokens;

/// A bare statement.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) sql: String,
    /// Names that were in MySQL's quotes and are in double quotes now. They are not texts.
    pub(super) names: BTreeSet<String>,
}

/// Returns the bare statement: without a Markdown fence and without a trailing semicolon, with
/// quotes that the database knows. SQLite knows MySQL's quotes, and interprets nothing in them as a
/// text.
pub(super) fn clean(text: &str, dialect: &Dialect) -> Result<Cut, Refusal> {
    let text = unfenced(text);
    let Cut { sql, names } = match dialect {
        Dialect::Postgres => standard_quotes(text),
        _ => Cut { sql: text.to_owned(), names: BTreeSet::new() },
    };
    let tokens = tokens(&sql, dialect)?;
    let mut end = sql.len();
    for token in tokens.iter().rev() {
        match token.token {
            Token::Whitespace(_) | Token::EOF => {}
            Token::SemiColon => end = offset(&sql, token.span.start),
            _ => break,
        }
    }
    let sql = sql[..end].trim().to_owned();
    if sql.is_empty() { Err(Refusal::Empty) } else { Ok(Cut { sql, names }) }
}

/// Returns the byte offset of a location. Lines and columns count characters from 1.
pub(super) fn offset(text: &str, place: Location) -> usize {
    let mut at = 0;
    for _ in 1..place.line {
        let Some(end) = text[at..].find('\n') else { return text.len() };
        at += end + 1;
    }
    let column = usize::try_from(place.column.saturating_sub(1)).unwrap_or(usize::MAX);
    let rest = text[at..].char_indices().nth(column);
    rest.map_or(text.len(), |(index, _)| at + index)
}

fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```") else { return text };
    let inner = inner.split_once('\n').map_or(inner, |(_, rest)| rest);
    inner.rsplit_once("```").map_or(inner, |(before, _)| before)
}

/// Replaces MySQL's backticks by the quotes of standard SQL, outside of comments and other quotes.
fn standard_quotes(text: &str) -> Cut {
    let mut sql = String::with_capacity(text.len());
    let mut names = BTreeSet::new();
    let mut at = 0;
    while at < text.len() {
        let (before, rest) = text.split_at(at);
        let piece = &rest[..length(before, rest)];
        match piece.strip_prefix('`').and_then(|name| name.strip_suffix('`')) {
            Some(name) => {
                let name = name.replace("``", "`");
                sql.push_str(&format!("\"{}\"", name.replace('"', "\"\"")));
                names.insert(name);
            }
            None => sql.push_str(piece),
        }
        at += piece.len();
    }
    Cut { sql, names }
}

/// Returns the length of the first piece of a text in bytes: a comment, a quoted text, or one
/// character.
fn length(before: &str, text: &str) -> usize {
    match text.as_bytes() {
        [b'-', b'-', ..] => text.find(['\n', '\r']).unwrap_or(text.len()),
        [b'/', b'*', ..] => comment_length(text),
        [b'\'', ..] => quoted_length(text, '\'', has_escapes(before)),
        [b'"', ..] => quoted_length(text, '"', false),
        [b'`', ..] => quoted_length(text, '`', false),
        [b'$', ..] => dollar_length(before, text),
        _ => text.chars().next().map_or(0, char::len_utf8),
    }
}

/// Returns the length of a comment. PostgreSQL's comments nest.
fn comment_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 0;
    let mut at = 0;
    while at + 1 < bytes.len() {
        match (bytes[at], bytes[at + 1]) {
            (b'/', b'*') => {
                depth += 1;
                at += 2;
            }
            (b'*', b'/') => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns the length of a quoted text. A doubled quote does not end it.
fn quoted_length(text: &str, quote: char, has_escapes: bool) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if has_escapes && character == '\\' {
            characters.next();
        } else if character == quote && characters.next_if(|(_, next)| *next == quote).is_none() {
            return at + quote.len_utf8();
        }
    }
    text.len()
}

/// Returns true if a PostgreSQL text with backslash escapes begins after `before`: `E'it\'s'`.
fn has_escapes(before: &str) -> bool {
    let mut characters = before.chars().rev();
    matches!(characters.next(), Some('e' | 'E')) && !characters.next().is_some_and(is_name_part)
}

/// Returns the length of a dollar-quoted text, `$$it's$$` or `$tag$it's$tag$`, or of the dollar
/// alone.
fn dollar_length(before: &str, text: &str) -> usize {
    let is_inside = before.chars().next_back().is_some_and(is_name_part);
    let Some(end) = text[1..].find('$').filter(|_| !is_inside) else { return 1 };
    let (mark, rest) = text.split_at(end + 2);
    let tag = mark.trim_matches('$');
    if tag.starts_with(|it: char| it.is_ascii_digit()) || !tag.chars().all(is_name_part) {
        return 1;
    }
    rest.find(mark).map_or(text.len(), |at| at + 2 * mark.len())
}

/// Returns true if a name without quotes may contain a character.
pub(super) fn is_name_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '$') || !character.is_ascii()
}

#[cfg(test)]
mod tests {
    use wattle_plugin::sql::Dialect;

    use super::{clean, standard_quotes};

    #[test]
    fn s4_31_backticks_become_quotes_outside_of_texts_and_comments() {
        for (text, standard) in [
            ("SELECT `a` -- it's `b`\n, `c`", "SELECT \"a\" -- it's `b`\n, \"c\""),
            ("-- it's\nSELECT `id`", "-- it's\nSELECT \"id\""),
            ("SELECT `a` -- \"b", "SELECT \"a\" -- \"b"),
            ("SELECT `a` --", "SELECT \"a\" --"),
            ("/* it's \" ` */ SELECT `a`", "/* it's \" ` */ SELECT \"a\""),
            ("SELECT `a` - -1, 4 / 2, `b`", "SELECT \"a\" - -1, 4 / 2, \"b\""),
            ("SELECT 'it''s `a`', `b`", "SELECT 'it''s `a`', \"b\""),
            ("SELECT \"a`\"\"b\", `c`", "SELECT \"a`\"\"b\", \"c\""),
            ("SELECT `a\"b`, `c``d`", "SELECT \"a\"\"b\", \"c`d\""),
            ("SELECT `金额`, '`'", "SELECT \"金额\", '`'"),
            ("SELECT `a", "SELECT `a"),
            ("/* a /* b */ ' */ SELECT `a`", "/* a /* b */ ' */ SELECT \"a\""),
            ("SELECT E'it\\'s `a`', `b`", "SELECT E'it\\'s `a`', \"b\""),
            ("SELECT $$it's `a`$$, $x$`$y$`$x$, `b`", "SELECT $$it's `a`$$, $x$`$y$`$x$, \"b\""),
            ("SELECT name$1, `a$`, $1", "SELECT name$1, \"a$\", $1"),
            ("SELECT a[1], `b`", "SELECT a[1], \"b\""),
            ("SELECT case'\\', `b`", "SELECT case'\\', \"b\""),
        ] {
            assert_eq!(standard_quotes(text).sql, standard);
        }
        let names = standard_quotes("SELECT `a\"b`, \"c\", '`d`' FROM `t``u`").names;
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a\"b", "t`u"]);
    }

    #[test]
    fn s4_31_sqlite_keeps_its_quotes() {
        for text in ["SELECT `a\"b`, [it's `c`] -- it's\n, \"d\"", "-- `\nSELECT `id` /* ` */"] {
            let cut = clean(text, &Dialect::Sqlite).unwrap();
            assert_eq!(cut.sql, text);
            assert!(cut.names.is_empty());
        }
    }

    #[test]
    fn comments_around_a_statement_are_kept() {
        for dialect in [Dialect::Sqlite, Dialect::Postgres] {
            let cleaned = |text: &str| clean(text, &dialect).unwrap().sql;
            assert_eq!(cleaned("-- it's\nSELECT 1; -- end"), "-- it's\nSELECT 1");
            assert_eq!(cleaned("SELECT 1 --"), "SELECT 1 --");
        }
    }
}
