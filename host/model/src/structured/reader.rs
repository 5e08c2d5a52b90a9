//! Reads one document out of a text.
//!
//! What leaves no doubt is put right on the way: control characters in a text, a comma before a
//! closing bracket, comments, the constants of Python. Everything else that is no JSON breaks the
//! document. One that ends early is cut, and nothing is added to it.
//!
//! A bracket may also stand in prose. Little is read then, and the caller goes on within it, so
//! that the work stays in proportion to the text whatever it is made of.

use serde_json::Number;

/// What a comment has that stands for something left out.
const ELLIPSES: [&str; 2] = ["...", "\u{2026}"];

/// What ends a block of Markdown.
const FENCE: &str = "```";

/// What was read.
pub(super) struct Read<'t> {
    pub(super) end: End<'t>,
    /// Bytes of the text that need not be read again.
    pub(super) length: usize,
    /// The document in strict JSON, as far as it was read.
    pub(super) strict: String,
}

/// How it ended.
pub(super) enum End<'t> {
    /// The document is complete.
    Complete,
    /// The text ends inside of the document.
    Cut,
    /// From here on it is no JSON.
    Broken(&'t str),
    /// It was no document.
    Prose,
    /// The text ends before it is clear whether it is one.
    Begun,
}

/// Reads the document that a text begins with. The first character is a bracket, and in a list
/// the first item an object.
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

/// Writes a character of a text as JSON has it, where control characters are escaped.
pub(super) fn push(text: &mut String, sign: char) {
    if sign < ' ' {
        text.push_str(&format!("\\u{:04x}", u32::from(sign)));
    } else {
        text.push(sign);
    }
}

struct Reader<'t> {
    text: &'t str,
    /// What is not read yet.
    rest: &'t str,
    /// The brackets that will close what is open, innermost last.
    open: Vec<char>,
    strict: String,
    /// Whether it is a document and not prose: an object has a colon after its first key, and a
    /// list a comma after its first object.
    is_sure: bool,
    /// Where reading goes on if it is prose: a first key may be a text between other quotes.
    prose: usize,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The first key or item, or none.
    First,
    /// A further key or item.
    More,
    Colon,
    Value,
    /// A comma, or the end of what is open.
    Behind,
}

/// Why reading stops.
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

    /// Goes behind white space and comments.
    fn skip(&mut self, next: Next) -> Result<(), Stop<'t>> {
        self.rest = self.rest.trim_start_matches(is_space);
        // Prose is read again from its first key on, so a comment behind that must not be long.
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

    /// Takes a sign of one byte over.
    fn take(&mut self, sign: char) {
        self.strict.push(sign);
        self.rest = &self.rest[sign.len_utf8()..];
    }

    /// Goes behind a broken document: to where it is closed or its block ends, or else to the end
    /// of the text. Nothing in it may be taken for the whole.
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

/// White space, and what looks like it.
fn is_space(sign: char) -> bool {
    sign.is_whitespace() || matches!(sign, '\u{feff}' | '\u{200b}')
}

fn is_of_scalar(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '+' | '-' | '.')
}
