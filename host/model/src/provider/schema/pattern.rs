//! Which regular expression engines accept a pattern.
//!
//! JSON Schema uses the syntax of ECMAScript. Services with OpenAI's format compile patterns with other engines
//! (Python's, Rust's), and reject a whole request for a pattern that these do not support. Sources: "regex lookaround
//! is not supported" (vercel/ai pull request 21037), "is not a 'regex'" for `\p{L}` (actual-mcp-server issue 293) and,
//! from DeepSeek, for `[` within a class (Dokploy/mcp issue 43).

use std::iter::Peekable;
use std::str::Chars;

/// Maximum repetitions that every engine accepts.
const REPETITIONS: u32 = 1000;

/// Maximum characters between the braces of a repetition.
const BRACES_CHARS: usize = 12;

/// How many engines accept a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// All engines, with the same meaning.
    Portable,
    /// Some engines: the pattern has look-around, a back-reference or special syntax.
    Special,
    /// No engine.
    Broken,
}

/// Returns the form of a pattern. Syntax that some engines do not support is special.
pub(super) fn form(pattern: &str) -> Form {
    let mut scan = Scan { letters: pattern.chars().peekable(), form: Form::Portable };
    scan.pattern();
    scan.form
}

/// Returns a pattern that matches only this text.
pub(super) fn literal(text: &str) -> String {
    let mut pattern = String::from("^");
    for letter in text.chars() {
        if "^$\\.*+?()[]{}|/".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('$');
    pattern
}

struct Scan<'p> {
    letters: Peekable<Chars<'p>>,
    form: Form,
}

impl Scan<'_> {
    fn found(&mut self, form: Form) {
        self.form = self.form.max(form);
    }

    fn pattern(&mut self) {
        let mut groups = 0_usize;
        // Whether a repetition may follow.
        let mut repeatable = false;
        while let Some(letter) = self.letters.next() {
            repeatable = match letter {
                '\\' => {
                    self.escape(false);
                    true
                }
                '[' => {
                    self.class();
                    true
                }
                '(' => {
                    groups += 1;
                    self.group();
                    false
                }
                ')' if groups == 0 => {
                    self.found(Form::Broken);
                    false
                }
                ')' => {
                    groups -= 1;
                    true
                }
                '|' | '^' | '$' => false,
                '*' | '+' | '?' => {
                    self.repeated(repeatable);
                    false
                }
                '{' => self.braces(repeatable),
                _ => true,
            };
        }
        if groups > 0 {
            self.found(Form::Broken);
        }
    }

    /// Reads what follows the opening parenthesis of a group.
    fn group(&mut self) {
        if self.letters.next_if_eq(&'?').is_some() && self.letters.next() != Some(':') {
            self.found(Form::Special);
        }
    }

    fn repeated(&mut self, repeatable: bool) {
        if !repeatable {
            self.found(Form::Broken);
        }
        // A lazy repetition.
        self.letters.next_if_eq(&'?');
    }

    /// Reads braces after the opening one. Returns whether a repetition may follow.
    fn braces(&mut self, repeatable: bool) -> bool {
        let mut ahead = self.letters.clone();
        let mut text = String::new();
        let is_closed = loop {
            match ahead.next() {
                Some('}') => break true,
                Some(letter) if text.len() < BRACES_CHARS => text.push(letter),
                _ => break false,
            }
        };
        let bounds = if is_closed { bounds(&text) } else { None };
        let Some((least, most)) = bounds else {
            // Some engines read such a brace as a literal.
            self.found(Form::Special);
            return true;
        };
        self.letters = ahead;
        if least > most {
            self.found(Form::Broken);
        } else if most > REPETITIONS {
            self.found(Form::Special);
        }
        self.repeated(repeatable);
        false
    }

    /// Reads what follows a backslash. Returns the character that the escape represents, if it represents one.
    fn escape(&mut self, in_class: bool) -> Option<char> {
        let Some(letter) = self.letters.next() else {
            self.found(Form::Broken);
            return None;
        };
        match letter {
            'd' | 'D' | 'w' | 'W' | 's' | 'S' => None,
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'f' => Some('\u{c}'),
            'v' => Some('\u{b}'),
            'b' | 'B' if !in_class => None,
            'x' => self.code(2),
            'u' => self.code(4),
            '<' | '>' => {
                self.found(Form::Special);
                Some(letter)
            }
            _ if letter.is_ascii() && !letter.is_ascii_alphanumeric() => Some(letter),
            _ => {
                self.found(Form::Special);
                None
            }
        }
    }

    /// Reads a character code with this number of digits.
    fn code(&mut self, digits: usize) -> Option<char> {
        let mut code = 0;
        for _ in 0..digits {
            let Some(digit) = self.letters.peek().and_then(|letter| letter.to_digit(16)) else {
                self.found(Form::Special);
                return None;
            };
            self.letters.next();
            code = code * 16 + digit;
        }
        let letter = char::from_u32(code);
        if letter.is_none() {
            self.found(Form::Special);
        }
        letter
    }

    /// Reads a character class after its opening bracket.
    fn class(&mut self) {
        self.letters.next_if_eq(&'^');
        let mut is_first = true;
        // The character that may start a range.
        let mut before = None;
        while let Some(letter) = self.letters.next() {
            let next = self.letters.peek().copied();
            if letter == ']' {
                if is_first {
                    // Some engines read an empty class, others the start of a longer one.
                    self.found(Form::Special);
                }
                return;
            }
            if matches!(letter, '&' | '~' | '-') && next == Some(letter) {
                self.found(Form::Special);
            }
            before = if letter == '-' && !is_first && next != Some(']') {
                self.range(before);
                None
            } else {
                self.member(letter)
            };
            is_first = false;
        }
        self.found(Form::Broken);
    }

    fn member(&mut self, letter: char) -> Option<char> {
        match letter {
            '\\' => self.escape(true),
            '[' => {
                // Some engines have nested classes.
                self.found(Form::Special);
                Some(letter)
            }
            _ => Some(letter),
        }
    }

    /// Reads the rest of a range after its hyphen.
    fn range(&mut self, from: Option<char>) {
        let Some(letter) = self.letters.next() else { return };
        match (from, self.member(letter)) {
            (Some(from), Some(to)) if from <= to => {}
            (Some(_), Some(_)) => self.found(Form::Broken),
            // `[\w-.]` is an error in many engines.
            _ => self.found(Form::Special),
        }
    }
}

/// Returns the bounds of `{2}`, `{2,}` and `{2,5}`.
fn bounds(text: &str) -> Option<(u32, u32)> {
    let (least, most) = text.split_once(',').unwrap_or((text, text));
    let number = |digits: &str| -> Option<u32> {
        if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
    };
    let least = number(least)?;
    let most = if most.is_empty() { least } else { number(most)? };
    Some((least, most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: Form, patterns: &[&str]) {
        for pattern in patterns {
            assert_eq!(form(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn syntax_of_every_engine_is_portable() {
        check(
            Form::Portable,
            &[
                "",
                "^[a-z0-9_-]{1,64}$",
                "^[\\w.-]+$",
                "^\\d{4}-\\d{2}(?:-\\d{2})?$",
                "[^/]+?|a{2,}",
                "^\\/v1\\.\\-\\u00e9\\x41$",
                "\\bword\\b",
                "[-a][a-]",
                "a]}",
            ],
        );
    }

    #[test]
    fn syntax_of_some_engines_is_special() {
        check(Form::Special, &["^(?!\\.)a", "(?=a)", "(?<=a)b", "(?<y>a)", "(?i)a", "(a)\\1"]);
        check(Form::Special, &["^[\\p{L}\\p{N} ._-]+$", "\\u{1F600}", "\\ud83d", "\\Aa\\Z"]);
        check(Form::Special, &["^[\\w-.]+$", "^[a-z[\\]{}]*$", "[]a]", "[a&&b]", "[\\b]"]);
        check(Form::Special, &["a{,3}", "${a}", "a{1,2000}"]);
    }

    #[test]
    fn syntax_of_no_engine_is_broken() {
        let broken = ["(", "a)", "[a", "*a", "a**", "a++", "(?:+)", "[z-a]", "a{3,2}", "a\\"];
        check(Form::Broken, &broken);
    }

    #[test]
    fn literal_matches_itself() {
        assert_eq!(literal("filter[id]"), "^filter\\[id\\]$");
        assert_eq!(literal("$top @x"), "^\\$top @x$");
        assert_eq!(form(&literal("a.b*(c)|{d}/e\\")), Form::Portable);
    }
}
