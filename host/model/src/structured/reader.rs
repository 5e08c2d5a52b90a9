//! Reads one JSON document from a text.
//!
//! The reader corrects what has only one possible meaning: control characters in a string, a comma
//! before a closing bracket, comments, the constants of Python. Any other invalid syntax makes the
//! document malformed. A document that ends early is truncated, and nothing is added to it.
//!
//! A bracket may also be part of prose. The reader then consumes little, and the caller continues
//! within it, so that the work is proportional to the text whatever it contains.

use serde_json::Number;

/// Marks in a comment that replaces omitted content.
const ELLIPSES: [&str; 2] = ["...", "\u{2026}"];

/// The end of a code block in Markdown.
const FENCE: &str = "```";

/// The result of reading a text.
pub(super) struct Read<'t> {
    pub(super) end: End<'t>,
    /// Bytes of the text that the caller skips.
    pub(super) length: usize,
    /// The document in strict JSON, up to where it was read.
    pub(super) strict: String,
}

/// The outcome of reading a document.
pub(super) enum End<'t> {
    /// The document is complete.
    Complete,
    /// The text ends within the document.
    Cut,
    /// The text is not valid JSON from here on.
    Broken(&'t str),
    /// The bracket is part of prose.
    Prose,
    /// The text ends before it is known whether the bracket starts a document.
    Begun,
}

/// Reads the document at the start of a text. The first character must be a bracket. In an array,
/// the first item must be an object.
pub(super) fn read(text: &str) -> Read<'_> {
    let mut reader = Reader {
        text,
        rest: text,
        open: Vec::new(),
        strict: String::new(),
        is_sure: false,
        prose: 1,
    };
    let end = match reader.document() {
        Ok(()) => End::Complete,
        Err(Stop::Cut) if !reader.is_sure => End::Begun,
        Err(_) if !reader.is_sure => End::Prose,
        Err(Stop::Cut) => End::Cut,
        Err(Stop::Broken(place)) => {
            reader.leave();
            End::Broken(place)
        }
    };
    let length = match end {
        End::Prose | End::Begun => reader.prose,
        _ => text.len() - reader.rest.len(),
    };
    Read { end, length, strict: reader.strict }
}

/// Appends a character of a string in the form that JSON requires: control characters are escaped.
pub(super) fn push(text: &mut String, sign: char) {
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
    open: Vec<char>,
    strict: String,
    /// Whether the text is a document rather than prose: an object has a colon after its first key,
    /// an array has a comma after its first object.
    is_sure: bool,
    /// Where the caller continues if the text is prose: what looks like the first key may be text
    /// between two other quotes.
    prose: usize,
}

/// What the syntax permits next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The first key or item, or a closing bracket.
    First,
    /// A further key or item.
    More,
    Colon,
    Value,
    /// A comma or a closing bracket.
    Behind,
}

/// Why the reader stops.
enum Stop<'t> {
    Cut,
    Broken(&'t str),
}

impl<'t> Reader<'t> {
    fn document(&mut self) -> Result<(), Stop<'t>> {
        let mut next = Next::Value;
        loop {
            let skipped = self.skip(next);
            if next == Next::First && self.open.len() == 1 {
                self.prose = self.text.len() - self.rest.len();
            }
            skipped?;
            let sign = self.rest.chars().next().ok_or(Stop::Cut)?;
            next = self.step(next, sign)?;
            if self.open.is_empty() {
                return Ok(());
            }
        }
    }

    /// Skips white space and comments.
    fn skip(&mut self, next: Next) -> Result<(), Stop<'t>> {
        self.rest = self.rest.trim_start_matches(is_space);
        // Prose is read again from its first key on, so a comment after that must not count, or
        // long texts would be read again and again.
        while next != Next::Colon && self.rest.starts_with('/') {
            let start = self.rest;
            let end = match start.as_bytes().get(1) {
                Some(b'/') => "\n",
                Some(b'*') => "*/",
                Some(_) => return Err(Stop::Broken(start)),
                None => return Err(Stop::Cut),
            };
            let Some((comment, rest)) = start[2..].split_once(end) else {
                self.rest = "";
                return Err(Stop::Cut);
            };
            self.rest = rest.trim_start_matches(is_space);
            if ELLIPSES.iter().any(|dots| comment.contains(dots)) {
                return Err(Stop::Broken(start));
            }
        }
        Ok(())
    }

    fn step(&mut self, next: Next, sign: char) -> Result<Next, Stop<'t>> {
        match (next, sign) {
            (Next::First | Next::More | Next::Behind, '}' | ']') => self.close(sign),
            (Next::Behind, ',') => {
                self.is_sure |= self.open.len() == 1;
                self.rest = &self.rest[1..];
                Ok(Next::More)
            }
            (Next::Colon, ':') => {
                self.is_sure |= self.open.first() == Some(&'}');
                self.take(sign);
                Ok(Next::Value)
            }
            (Next::Behind | Next::Colon, _) => Err(Stop::Broken(self.rest)),
            (Next::First | Next::More, _) => {
                if next == Next::More {
                    self.strict.push(',');
                }
                if self.open.last() == Some(&'}') { self.key(sign) } else { self.value(sign) }
            }
            (Next::Value, _) => self.value(sign),
        }
    }

    fn close(&mut self, sign: char) -> Result<Next, Stop<'t>> {
        if self.open.last() != Some(&sign) {
            return Err(Stop::Broken(self.rest));
        }
        self.open.pop();
        self.take(sign);
        Ok(Next::Behind)
    }

    fn key(&mut self, sign: char) -> Result<Next, Stop<'t>> {
        if sign != '"' {
            return Err(Stop::Broken(self.rest));
        }
        self.string()?;
        Ok(Next::Colon)
    }

    fn value(&mut self, sign: char) -> Result<Next, Stop<'t>> {
        let close = match sign {
            '{' => '}',
            '[' => ']',
            '"' => {
                self.string()?;
                return Ok(Next::Behind);
            }
            _ => {
                self.scalar()?;
                return Ok(Next::Behind);
            }
        };
        self.open.push(close);
        self.take(sign);
        Ok(Next::First)
    }

    fn string(&mut self) -> Result<(), Stop<'t>> {
        self.take('"');
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
                _ => push(&mut self.strict, sign),
            }
        }
        self.rest = "";
        Err(Stop::Cut)
    }

    fn scalar(&mut self) -> Result<(), Stop<'t>> {
        let Some(end) = self.rest.find(|sign: char| !is_of_scalar(sign)) else {
            self.strict.push_str(self.rest);
            self.rest = "";
            return Err(Stop::Cut);
        };
        let (word, rest) = self.rest.split_at(end);
        self.strict.push_str(match word {
            "true" | "True" => "true",
            "false" | "False" => "false",
            "null" | "None" => "null",
            number if serde_json::from_str::<Number>(number).is_ok() => number,
            _ => return Err(Stop::Broken(self.rest)),
        });
        self.rest = rest;
        Ok(())
    }

    /// Copies a character of one byte.
    fn take(&mut self, sign: char) {
        self.strict.push(sign);
        self.rest = &self.rest[sign.len_utf8()..];
    }

    /// Skips a malformed document: to its closing bracket, to the end of its code block, or else to
    /// the end of the text. A part of it must not count as a document.
    fn leave(&mut self) {
        let text = self.rest;
        let mut signs = text.char_indices();
        let mut in_text = false;
        while let Some((at, sign)) = signs.next() {
            match sign {
                '\\' if in_text => _ = signs.next(),
                '"' => in_text = !in_text,
                _ if in_text => {}
                '{' => self.open.push('}'),
                '[' => self.open.push(']'),
                '}' | ']' => {
                    while self.open.pop().is_some_and(|close| close != sign) {}
                    if self.open.is_empty() {
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
