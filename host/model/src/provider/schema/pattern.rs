//! Which regular expression engines accept a pattern.
//!
//! JSON Schema uses the syntax of ECMAScript. Services with OpenAI's format compile patterns with
//! other engines (Python's, Rust's), and reject a whole request because of a pattern that these
//! engines do not support. Sources: "regex lookaround is not supported" (vercel/ai pull request
//! 21037), "is not a 'regex'" for `\p{L}` (actual-mcp-server issue 293) and, from DeepSeek, for `[`
//! within a class (Dokploy/mcp issue 43).

use std::iter::Peekable;
use std::str::Chars;

/// Maximum count in a repetition such as `{1,1000}` that every regular expression engine accepts.
const MAX_REPETITIONS: u32 = 1000;

/// Maximum characters between the braces of a repetition.
const MAX_BRACES_CHARS: usize = 12;

/// How many engines accept a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Portability {
    /// All engines accept the pattern, with the same meaning.
    Portable,
    /// Some engines accept the pattern. It has look-around, a back-reference or special syntax.
    Special,
    /// No engine accepts the pattern.
    Invalid,
}

/// Returns the portability of a pattern.
pub(super) fn classify(pattern: &str) -> Portability {
    let mut scan =
        PatternScanner { letters: pattern.chars().peekable(), portability: Portability::Portable };
    scan.pattern();
    scan.portability
}

/// Returns a pattern that matches only the string `text`.
pub(super) fn exact_match(text: &str) -> String {
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

struct PatternScanner<'p> {
    letters: Peekable<Chars<'p>>,
    portability: Portability,
}

impl PatternScanner<'_> {
    fn downgrade(&mut self, portability: Portability) {
        self.portability = self.portability.max(portability);
    }

    fn pattern(&mut self) {
        let mut groups = 0_usize;
        // Whether the pattern may continue with a repetition.
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
                    self.downgrade(Portability::Invalid);
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
            self.downgrade(Portability::Invalid);
        }
    }

    /// Reads what follows the opening parenthesis of a group.
    fn group(&mut self) {
        if self.letters.next_if_eq(&'?').is_some() && self.letters.next() != Some(':') {
            self.downgrade(Portability::Special);
        }
    }

    fn repeated(&mut self, repeatable: bool) {
        if !repeatable {
            self.downgrade(Portability::Invalid);
        }
        // A `?` makes the repetition lazy.
        self.letters.next_if_eq(&'?');
    }

    /// Reads braces after the opening one. Returns whether a repetition may follow.
    fn braces(&mut self, repeatable: bool) -> bool {
        let mut ahead = self.letters.clone();
        let mut text = String::new();
        let is_closed = loop {
            match ahead.next() {
                Some('}') => break true,
                Some(letter) if text.len() < MAX_BRACES_CHARS => text.push(letter),
                _ => break false,
            }
        };
        let bounds = if is_closed { bounds(&text) } else { None };
        let Some((least, most)) = bounds else {
            // Some engines read such a brace as a literal.
            self.downgrade(Portability::Special);
            return true;
        };
        self.letters = ahead;
        if least > most {
            self.downgrade(Portability::Invalid);
        } else if most > MAX_REPETITIONS {
            self.downgrade(Portability::Special);
        }
        self.repeated(repeatable);
        false
    }

    /// Reads what follows a backslash. Returns the character that the escape represents, if it
    /// represents one.
    fn escape(&mut self, in_class: bool) -> Option<char> {
        let Some(letter) = self.letters.next() else {
            self.downgrade(Portability::Invalid);
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
                self.downgrade(Portability::Special);
                Some(letter)
            }
            _ if letter.is_ascii() && !letter.is_ascii_alphanumeric() => Some(letter),
            _ => {
                self.downgrade(Portability::Special);
                None
            }
        }
    }

    /// Reads a character code with this number of digits.
    fn code(&mut self, digits: usize) -> Option<char> {
        let mut code = 0;
        for _ in 0..digits {
            let Some(digit) = self.letters.peek().and_then(|letter| letter.to_digit(16)) else {
                self.downgrade(Portability::Special);
                return None;
            };
            self.letters.next();
            code = code * 16 + digit;
        }
        let letter = char::from_u32(code);
        if letter.is_none() {
            self.downgrade(Portability::Special);
        }
        letter
    }

    /// Reads a character class after its opening bracket.
    fn class(&mut self) {
        self.letters.next_if_eq(&'^');
        let mut is_first = true;
        // The previous character, which may start a range.
        let mut before = None;
        while let Some(letter) = self.letters.next() {
            let next = self.letters.peek().copied();
            if letter == ']' {
                if is_first {
                    // Some engines interpret this as an empty class, and others as the start of a
                    // longer class.
                    self.downgrade(Portability::Special);
                }
                return;
            }
            if matches!(letter, '&' | '~' | '-') && next == Some(letter) {
                self.downgrade(Portability::Special);
            }
            before = if letter == '-' && !is_first && next != Some(']') {
                self.range(before);
                None
            } else {
                self.member(letter)
            };
            is_first = false;
        }
        self.downgrade(Portability::Invalid);
    }

    fn member(&mut self, letter: char) -> Option<char> {
        match letter {
            '\\' => self.escape(true),
            '[' => {
                // Some engines interpret this as a nested class.
                self.downgrade(Portability::Special);
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
            (Some(_), Some(_)) => self.downgrade(Portability::Invalid),
            // `[\w-.]` is an error in many engines.
            _ => self.downgrade(Portability::Special),
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

    fn check(expected: Portability, patterns: &[&str]) {
        for pattern in patterns {
            assert_eq!(classify(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn syntax_that_all_engines_accept_is_portable() {
        check(
            Portability::Portable,
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
        check(
            Portability::Special,
            &["^(?!\\.)a", "(?=a)", "(?<=a)b", "(?<y>a)", "(?i)a", "(a)\\1"],
        );
        check(Portability::Special, &["^[\\p{L}\\p{N} ._-]+$", "\\u{1F600}", "\\ud83d", "\\Aa\\Z"]);
        check(Portability::Special, &["^[\\w-.]+$", "^[a-z[\\]{}]*$", "[]a]", "[a&&b]", "[\\b]"]);
        check(Portability::Special, &["a{,3}", "${a}", "a{1,2000}"]);
    }

    #[test]
    fn syntax_of_no_engine_is_broken() {
        let broken = ["(", "a)", "[a", "*a", "a**", "a++", "(?:+)", "[z-a]", "a{3,2}", "a\\"];
        check(Portability::Invalid, &broken);
    }

    #[test]
    fn exact_match_of_a_text_matches_only_the_text() {
        assert_eq!(exact_match("filter[id]"), "^filter\\[id\\]$");
        assert_eq!(exact_match("$top @x"), "^\\$top @x$");
        assert_eq!(classify(&exact_match("a.b*(c)|{d}/e\\")), Portability::Portable);
    }
}
