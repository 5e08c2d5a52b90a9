//! The nesting of TOML documents, counted before they are parsed.
//!
//! The parser accepts 80 inline tables inside one another, each below a key of 80 parts. So a
//! document of some kilobytes can have 6,400 levels, and all that reads, copies or drops its values
//! recurses into them, the parser included. [`check`] counts the levels from the events of the
//! parser, which it reports before there are values.

use toml_parser::decoder::Encoding;
use toml_parser::parser::{EventReceiver, parse_document};
use toml_parser::{ErrorSink, Source, Span};

use crate::limit::DOCUMENT_DEPTH;
use crate::toml_lines::line_at;

/// Error: a document has too many tables and arrays inside one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tables and arrays are nested deeper than {DOCUMENT_DEPTH} levels")]
pub struct TooDeep {
    /// Line of the first level beyond the limit, from 1.
    pub line: u32,
}

/// Checks how deeply a document is nested. Does not report syntax errors.
///
/// Each part of a key counts as one level, also if it is an array of tables.
///
/// # Errors
///
/// [`TooDeep`] if the document has more than [`DOCUMENT_DEPTH`] levels.
pub fn check(text: &str) -> Result<(), TooDeep> {
    let tokens = Source::new(text).lex().into_vec();
    let mut nesting = Nesting::default();
    parse_document(&tokens, &mut nesting, &mut ());
    nesting.too_deep.map_or(Ok(()), |span| Err(TooDeep { line: line_at(text, span.start()) }))
}

/// The nesting at the current event.
#[derive(Default)]
struct Nesting {
    /// Number of tables and arrays around the last key, or around a value of an array. The tables
    /// of a dotted key are not included.
    levels: usize,
    /// The levels outside of each open inline table and array.
    outer: Vec<usize>,
    /// Number of parts of the last key; 0 if there is no key before the next value.
    parts: usize,
    /// Whether the next part belongs to the last key.
    is_dotted: bool,
    /// The first level beyond the limit.
    too_deep: Option<Span>,
}

impl Nesting {
    fn open_header(&mut self) {
        self.levels = 0;
    }

    fn close_header(&mut self, span: Span) {
        self.enter(self.parts, span);
    }

    /// Opens an inline table or an array. Returns true if the parser may read its content: the
    /// parser recurses.
    fn open(&mut self, span: Span) -> bool {
        self.outer.push(self.levels);
        self.enter(self.levels + self.parts.max(1), span);
        self.too_deep.is_none()
    }

    fn close(&mut self) {
        self.levels = self.outer.pop().unwrap_or_default();
        self.parts = 0;
    }

    fn enter(&mut self, levels: usize, span: Span) {
        self.levels = levels;
        self.parts = 0;
        self.check(levels, span);
    }

    fn check(&mut self, levels: usize, span: Span) {
        if levels > DOCUMENT_DEPTH && self.too_deep.is_none() {
            self.too_deep = Some(span);
        }
    }
}

impl EventReceiver for Nesting {
    fn std_table_open(&mut self, _span: Span, _error: &mut dyn ErrorSink) {
        self.open_header();
    }

    fn std_table_close(&mut self, span: Span, _error: &mut dyn ErrorSink) {
        self.close_header(span);
    }

    fn array_table_open(&mut self, _span: Span, _error: &mut dyn ErrorSink) {
        self.open_header();
    }

    fn array_table_close(&mut self, span: Span, _error: &mut dyn ErrorSink) {
        self.close_header(span);
    }

    fn inline_table_open(&mut self, span: Span, _error: &mut dyn ErrorSink) -> bool {
        self.open(span)
    }

    fn inline_table_close(&mut self, _span: Span, _error: &mut dyn ErrorSink) {
        self.close();
    }

    fn array_open(&mut self, span: Span, _error: &mut dyn ErrorSink) -> bool {
        self.open(span)
    }

    fn array_close(&mut self, _span: Span, _error: &mut dyn ErrorSink) {
        self.close();
    }

    fn simple_key(&mut self, span: Span, _kind: Option<Encoding>, _error: &mut dyn ErrorSink) {
        self.parts = if self.is_dotted { self.parts + 1 } else { 1 };
        self.is_dotted = false;
        self.check(self.levels + self.parts - 1, span);
    }

    fn key_sep(&mut self, _span: Span, _error: &mut dyn ErrorSink) {
        self.is_dotted = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns inline tables inside one another, each with a key of some parts.
    fn tables(number: usize, parts: usize) -> String {
        let key = vec!["a"; parts].join(".");
        (0..number).fold("1".to_owned(), |inner, _| format!("{{ {key} = {inner} }}"))
    }

    fn arrays(number: usize) -> String {
        format!("{}{}", "[".repeat(number), "]".repeat(number))
    }

    #[test]
    fn headers_keys_tables_and_arrays_count_together() {
        let key = vec!["k"; 50].join(".");
        for (text, fits) in [
            (format!("{key}.{key} = 1"), true),
            (format!("{key}.{key}.x.y = 1"), false),
            (format!("[{key}.{key}]"), true),
            (format!("[{key}.{key}.x]"), false),
            (format!("[[{key}]]\n{key}.x = 1"), true),
            (format!("[[{key}]]\n{key}.x.y = 1"), false),
            (format!("x = {}", tables(1, 100)), true),
            (format!("x = {}", tables(1, 101)), false),
            (format!("x = {}", tables(2, 50)), true),
            (format!("x = {}", tables(2, 51)), false),
            (format!("x = {}", arrays(100)), true),
            (format!("x = {}", arrays(101)), false),
            (format!("[{key}]\n'x.y' = [{}]", tables(1, 49)), true),
            (format!("[{key}]\nx.y = [{}]", tables(1, 49)), false),
        ] {
            assert_eq!(check(&text).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn values_beside_one_another_are_not_nested() {
        let beside = "[a.b]\nx = [[], {}, { y = 1, z.z = [2] }] # {{\ny = '[['\n[[c]]\n";
        assert_eq!(check(&beside.repeat(200)), Ok(()));
    }

    #[test]
    fn syntax_errors_are_not_reported_and_their_levels_count() {
        for text in ["x = {", "x = [1", "[a", "a.", "= 1", "x = }]", "[a]]\nb = 1"] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        let unclosed = tables(3, 60).replace('}', "");
        assert_eq!(check(&format!("\nx = {unclosed}")), Err(TooDeep { line: 2 }));
    }

    #[test]
    fn the_error_has_the_line_and_the_limit() {
        let error = check(&format!("a = 1\n\nb = {}\nc = 1", tables(79, 80))).unwrap_err();
        assert_eq!(error.line, 3);
        assert_eq!(error.to_string(), "tables and arrays are nested deeper than 100 levels");
    }
}
