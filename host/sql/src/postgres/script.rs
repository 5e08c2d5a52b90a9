//! Splits the text of a migration into statements in the same places as PostgreSQL:
//! <https://www.postgresql.org/docs/current/sql-syntax-lexical.html>.
//!
//! The server receives one statement at a time, by a protocol that refuses several statements. A
//! text that the server would split in other places is therefore an error.

/// A statement of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScriptStatement<'a> {
    /// Number of the line on which the statement begins.
    pub(crate) line: usize,
    /// Text without the semicolon.
    pub(crate) text: &'a str,
}

/// Returns the statements of a script, without comments before them.
pub(crate) fn statements(script: &str) -> Vec<ScriptStatement<'_>> {
    let mut found = Vec::new();
    let mut lexer = Lexer { text: script.as_bytes(), at: 0 };
    let (mut begin, mut counted, mut line) = (None, 0, 1);
    loop {
        let at = lexer.at;
        match lexer.advance() {
            Some(Piece::Gap) => continue,
            Some(Piece::Code) => {
                begin.get_or_insert(at);
                continue;
            }
            Some(Piece::Semicolon) | None => {}
        }
        if let Some(begin) = begin.take() {
            let between = script.get(counted..begin).unwrap_or_default();
            line += between.matches('\n').count();
            counted = begin;
            let text = script.get(begin..at.min(script.len())).unwrap_or_default();
            found.push(ScriptStatement { line, text });
        }
        if at >= script.len() {
            return found;
        }
    }
}

/// A piece of a script.
enum Piece {
    /// Whitespace or a comment.
    Gap,
    Semicolon,
    Code,
}

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

impl Lexer<'_> {
    /// Moves past the next piece, and returns its kind. Returns `None` at the end of the text.
    fn advance(&mut self) -> Option<Piece> {
        let first = *self.text.get(self.at)?;
        match first {
            b';' => {
                self.at += 1;
                return Some(Piece::Semicolon);
            }
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => {
                self.at += 1;
                return Some(Piece::Gap);
            }
            b'-' if self.sees(b"--") => {
                self.skip_line();
                return Some(Piece::Gap);
            }
            b'/' if self.sees(b"/*") => {
                // The server refuses an unterminated comment, so the comment is not left out.
                return Some(if self.skip_comment() { Piece::Gap } else { Piece::Code });
            }
            b'\'' | b'"' => self.skip_quoted(first),
            b'$' => self.skip_dollar(),
            _ if begins_name(first) => self.skip_name(),
            _ => self.at += 1,
        }
        Some(Piece::Code)
    }

    fn sees(&self, wanted: &[u8]) -> bool {
        self.text[self.at..].starts_with(wanted)
    }

    fn skip_line(&mut self) {
        while self.text.get(self.at).is_some_and(|byte| !matches!(byte, b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Skips a block comment, including the comments inside of it. Returns whether the comment is
    /// terminated.
    fn skip_comment(&mut self) -> bool {
        let mut depth = 0_usize;
        while self.at < self.text.len() {
            if self.sees(b"/*") {
                depth += 1;
                self.at += 2;
            } else if self.sees(b"*/") {
                depth -= 1;
                self.at += 2;
            } else {
                self.at += 1;
            }
            if depth == 0 {
                return true;
            }
        }
        false
    }

    /// Skips a quoted name, or a string constant without backslash escapes. Two quotes in a row are
    /// an escaped quote.
    fn skip_quoted(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.text.get(self.at) {
            self.at += 1;
            if *byte == quote {
                if self.text.get(self.at) != Some(&quote) {
                    return;
                }
                self.at += 1;
            }
        }
    }

    /// Skips a word. If the word is `E` and a quote follows, also skips the string constant.
    fn skip_name(&mut self) {
        let begin = self.at;
        while self.text.get(self.at).is_some_and(|byte| continues_name(*byte) || *byte == b'$') {
            self.at += 1;
        }
        let is_escape = self.text[begin..self.at].eq_ignore_ascii_case(b"e");
        if is_escape && self.text.get(self.at) == Some(&b'\'') {
            self.skip_escaped();
        }
    }

    /// Skips a string constant with backslash escapes. The constant can continue on further lines,
    /// with the same escapes.
    fn skip_escaped(&mut self) {
        loop {
            self.at += 1;
            loop {
                match self.text.get(self.at) {
                    None => return,
                    Some(b'\\') => self.at += 2,
                    Some(b'\'') => {
                        self.at += 1;
                        if self.text.get(self.at) != Some(&b'\'') {
                            break;
                        }
                        self.at += 1;
                    }
                    Some(_) => self.at += 1,
                }
            }
            match self.next_part() {
                Some(at) => self.at = at,
                None => return,
            }
        }
    }

    /// Returns the position of the quote that continues a string constant after a line break.
    fn next_part(&self) -> Option<usize> {
        let mut ahead = Self { text: self.text, at: self.at };
        let mut is_next_line = false;
        loop {
            match ahead.text.get(ahead.at)? {
                b'\n' | b'\r' => is_next_line = true,
                b' ' | b'\t' | 0x0b | 0x0c => {}
                b'-' if ahead.sees(b"--") => {
                    ahead.skip_line();
                    continue;
                }
                b'\'' if is_next_line => return Some(ahead.at),
                _ => return None,
            }
            ahead.at += 1;
        }
    }

    /// Skips a dollar-quoted string `$tag$ ... $tag$`, or a dollar sign that begins no such string.
    fn skip_dollar(&mut self) {
        let rest = &self.text[self.at + 1..];
        let name = rest.iter().take_while(|byte| continues_name(**byte)).count();
        let is_tag = name == 0 || begins_name(rest[0]);
        if !is_tag || rest.get(name) != Some(&b'$') {
            self.at += 1;
            return;
        }
        let tag = &self.text[self.at..self.at + name + 2];
        let body = self.at + tag.len();
        let end = self.text[body..].windows(tag.len()).position(|window| window == tag);
        self.at = end.map_or(self.text.len(), |end| body + end + tag.len());
    }
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

fn continues_name(byte: u8) -> bool {
    begins_name(byte) || byte.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::statements;

    fn split(script: &str) -> Vec<(usize, &str)> {
        statements(script).iter().map(|it| (it.line, it.text)).collect()
    }

    #[test]
    fn statements_end_at_semicolons() {
        assert!(split(" ;; -- nothing\n/* ; */ ;").is_empty());
        assert_eq!(
            split("-- first\nSELECT 1;\n\nSELECT 2 ;SELECT\n3 -- last"),
            [(2, "SELECT 1"), (4, "SELECT 2 "), (4, "SELECT\n3 -- last")]
        );
        assert_eq!(split("SELECT 'é'; SELECT \"ü\""), [(1, "SELECT 'é'"), (1, "SELECT \"ü\"")]);
    }

    #[test]
    fn semicolons_in_strings_names_and_comments_do_not_end_a_statement() {
        for text in [
            "SELECT ';', 'it''s;'",
            "SELECT \";\"\";\"",
            "SELECT E'\\';', e'\\\\', 1",
            "SELECT E'a' -- why\n'\\';'",
            "SELECT $$;$$, $a$ $b$; $a$, a$b$c",
            "SELECT $é$;$é$",
            "SELECT 1 /* ; /* ; */ ; */ + 2",
            "SELECT 1 -- ;\r+ 2",
            "SELECT name_e';'",
        ] {
            let script = format!("{text};SELECT 2");
            let line = 1 + text.matches('\n').count();
            assert_eq!(split(&script), [(1, text), (line, "SELECT 2")]);
        }
    }

    #[test]
    fn semicolons_after_strings_end_a_statement() {
        for (text, first) in [
            ("SELECT '\\';SELECT 2", "SELECT '\\'"),
            ("SELECT 'a'\n'\\';SELECT 2", "SELECT 'a'\n'\\'"),
            ("SELECT $1$;SELECT 2", "SELECT $1$"),
            ("SELECT a$b$;SELECT 2", "SELECT a$b$"),
            ("SELECT E'\\\\';SELECT 2", "SELECT E'\\\\'"),
        ] {
            assert_eq!(split(text)[0].1, first, "{text}");
        }
    }

    #[test]
    fn text_with_an_unterminated_string_or_comment_is_one_statement() {
        for text in ["SELECT 'a;", "SELECT \"a;", "SELECT E'\\", "SELECT $a$;", "SELECT 1 /* ;"] {
            assert_eq!(split(text), [(1, text)]);
        }
        assert_eq!(split("SELECT 1;\n/* ; SELECT 2"), [(1, "SELECT 1"), (2, "/* ; SELECT 2")]);
    }
}
