//! Reads one JSON document from a text.
//!
//! The reader corrects syntax errors that have only one possible meaning: control characters in a
//! string, a comma before a closing bracket, comments, the constants of Python. Any other invalid
//! syntax makes the document malformed. A document that ends early counts as truncated, and the
//! reader does not complete it.
//!
//! A bracket may also be part of prose. The reader then consumes only a little text, and the caller
//! continues after it, so that the work is proportional to the length of every text.

use serde_json::Number;

/// Marks in a comment that replaces omitted content.
const ELLIPSES: [&str; 2] = ["...", "\u{2026}"];

/// The end of a code block in Markdown.
const FENCE: &str = "```";

/// The result of reading a text.
pub(super) struct ReadOutcome<'t> {
    pub(super) end: DocumentEnd<'t>,
    /// Bytes of the text that the caller skips.
    pub(super) length: usize,
    /// The document in strict JSON, up to where it was read.
    pub(super) strict: String,
}

/// How the reading of a document ended.
pub(super) enum DocumentEnd<'t> {
    /// The document is complete.
    Complete,
    /// The text ends within the document.
    Truncated,
    /// The text is not valid JSON from here on.
    Invalid(&'t str),
    /// The bracket is part of prose.
    Prose,
    /// The text ends before it is known whether the bracket starts a document.
    Undecided,
}

/// Reads the document at the start of a text. The first character must be a bracket. In an array,
/// the first item must be an object.
pub(super) fn read(text: &str) -> ReadOutcome<'_> {
    let mut reader = Reader {
        text,
        rest: text,
        closers: Vec::new(),
        strict: String::new(),
        is_document: false,
        prose_length: 1,
    };
    let end = match reader.document() {
        Ok(()) => DocumentEnd::Complete,
        Err(ReadError::Truncated) if !reader.is_document => DocumentEnd::Undecided,
        Err(_) if !reader.is_document => DocumentEnd::Prose,
        Err(ReadError::Truncated) => DocumentEnd::Truncated,
        Err(ReadError::Invalid(place)) => {
            reader.skip_document();
            DocumentEnd::Invalid(place)
        }
    };
    let length = match end {
        DocumentEnd::Prose | DocumentEnd::Undecided => reader.prose_length,
        _ => text.len() - reader.rest.len(),
    };
    ReadOutcome { end, length, strict: reader.strict }
}

/// Appends a character of a string in the form that JSON requires: control characters are escaped.
pub(crate) fn push_escaped(text: &mut String, sign: char) {
    if sign < ' ' {
        text.push_str(&format!("\\u{:04x}", u32::from(sign)));
    } else {
        text.push(sign);
    }
}

struct Reader<'t> {
    text: &'t str,
    /// The rest of the text.
    rest: &'t str,
    /// The closing brackets of all open objects and arrays, innermost last.
    closers: Vec<char>,
    strict: String,
    /// Whether the text is known to be a document and not prose: an object has a colon after its
    /// first key, an array has a comma after its first object.
    is_document: bool,
    /// The number of bytes after which the caller continues if the text is prose. The text that
    /// looks like the first key may be text between two quotations.
    prose_length: usize,
}

/// What the syntax permits next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The first key or item, or a closing bracket.
    First,
    /// A further key or item.
    More,
    Colon,
    Value,
    /// A comma or a closing bracket.
    Separator,
}

/// Why the reader stops.
enum ReadError<'t> {
    Truncated,
    Invalid(&'t str),
}

impl<'t> Reader<'t> {
    fn document(&mut self) -> Result<(), ReadError<'t>> {
        let mut next = Expected::Value;
        loop {
            let skipped = self.skip(next);
            if next == Expected::First && self.closers.len() == 1 {
                self.prose_length = self.text.len() - self.rest.len();
            }
            skipped?;
            let sign = self.rest.chars().next().ok_or(ReadError::Truncated)?;
            next = self.step(next, sign)?;
            if self.closers.is_empty() {
                return Ok(());
            }
        }
    }

    /// Skips white space and comments.
    fn skip(&mut self, next: Expected) -> Result<(), ReadError<'t>> {
        self.rest = self.rest.trim_start_matches(is_space);
        // If the text turns out to be prose, it is read again from the first key on. Comments
        // between the key and the colon are therefore not skipped: long comments would be read many
        // times.
        while next != Expected::Colon && self.rest.starts_with('/') {
            let start = self.rest;
            let end = match start.as_bytes().get(1) {
                Some(b'/') => "\n",
                Some(b'*') => "*/",
                Some(_) => return Err(ReadError::Invalid(start)),
                None => return Err(ReadError::Truncated),
            };
            let Some((comment, rest)) = start[2..].split_once(end) else {
                self.rest = "";
                return Err(ReadError::Truncated);
            };
            self.rest = rest.trim_start_matches(is_space);
            if ELLIPSES.iter().any(|dots| comment.contains(dots)) {
                return Err(ReadError::Invalid(start));
            }
        }
        Ok(())
    }

    fn step(&mut self, next: Expected, sign: char) -> Result<Expected, ReadError<'t>> {
        match (next, sign) {
            (Expected::First | Expected::More | Expected::Separator, '}' | ']') => self.close(sign),
            (Expected::Separator, ',') => {
                self.is_document |= self.closers.len() == 1;
                self.rest = &self.rest[1..];
                Ok(Expected::More)
            }
            (Expected::Colon, ':') => {
                self.is_document |= self.closers.first() == Some(&'}');
                self.copy(sign);
                Ok(Expected::Value)
            }
            (Expected::Separator | Expected::Colon, _) => Err(ReadError::Invalid(self.rest)),
            (Expected::First | Expected::More, _) => {
                if next == Expected::More {
                    self.strict.push(',');
                }
                if self.closers.last() == Some(&'}') { self.key(sign) } else { self.value(sign) }
            }
            (Expected::Value, _) => self.value(sign),
        }
    }

    fn close(&mut self, sign: char) -> Result<Expected, ReadError<'t>> {
        if self.closers.last() != Some(&sign) {
            return Err(ReadError::Invalid(self.rest));
        }
        self.closers.pop();
        self.copy(sign);
        Ok(Expected::Separator)
    }

    fn key(&mut self, sign: char) -> Result<Expected, ReadError<'t>> {
        if sign != '"' {
            return Err(ReadError::Invalid(self.rest));
        }
        self.string()?;
        Ok(Expected::Colon)
    }

    fn value(&mut self, sign: char) -> Result<Expected, ReadError<'t>> {
        let close = match sign {
            '{' => '}',
            '[' => ']',
            '"' => {
                self.string()?;
                return Ok(Expected::Separator);
            }
            _ => {
                self.scalar()?;
                return Ok(Expected::Separator);
            }
        };
        self.closers.push(close);
        self.copy(sign);
        Ok(Expected::First)
    }

    fn string(&mut self) -> Result<(), ReadError<'t>> {
        self.copy('"');
        let text = self.rest;
        let mut signs = text.char_indices();
        while let Some((at, sign)) = signs.next() {
            match sign {
                '"' => {
                    self.strict.push(sign);
                    self.rest = &text[at + 1..];
                    return Ok(());
                }
                '\\' => match signs.next() {
                    Some((_, '\'')) => self.strict.push('\''),
                    Some((_, escaped)) => self.strict.extend([sign, escaped]),
                    None => break,
                },
                _ => push_escaped(&mut self.strict, sign),
            }
        }
        self.rest = "";
        Err(ReadError::Truncated)
    }

    fn scalar(&mut self) -> Result<(), ReadError<'t>> {
        let Some(end) = self.rest.find(|sign: char| !is_of_scalar(sign)) else {
            self.strict.push_str(self.rest);
            self.rest = "";
            return Err(ReadError::Truncated);
        };
        let (word, rest) = self.rest.split_at(end);
        self.strict.push_str(match word {
            "true" | "True" => "true",
            "false" | "False" => "false",
            "null" | "None" => "null",
            number if serde_json::from_str::<Number>(number).is_ok() => number,
            _ => return Err(ReadError::Invalid(self.rest)),
        });
        self.rest = rest;
        Ok(())
    }

    /// Copies a character of one byte.
    fn copy(&mut self, sign: char) {
        self.strict.push(sign);
        self.rest = &self.rest[sign.len_utf8()..];
    }

    /// Skips a malformed document up to its closing bracket, to the end of its code block, or else
    /// to the end of the text, so that no part of the malformed document counts as a document.
    fn skip_document(&mut self) {
        let text = self.rest;
        let mut signs = text.char_indices();
        let mut in_text = false;
        while let Some((at, sign)) = signs.next() {
            match sign {
                '\\' if in_text => _ = signs.next(),
                '"' => in_text = !in_text,
                _ if in_text => {}
                '{' => self.closers.push('}'),
                '[' => self.closers.push(']'),
                '}' | ']' => {
                    while self.closers.pop().is_some_and(|close| close != sign) {}
                    if self.closers.is_empty() {
                        self.rest = &text[at + 1..];
                        return;
                    }
                }
                '`' if text[at..].starts_with(FENCE) => {
                    self.rest = &text[at..];
                    return;
                }
                _ => {}
            }
        }
        self.rest = "";
    }
}

/// White space, and invisible characters that count as such.
fn is_space(sign: char) -> bool {
    sign.is_whitespace() || matches!(sign, '\u{feff}' | '\u{200b}')
}

fn is_of_scalar(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '+' | '-' | '.')
}
