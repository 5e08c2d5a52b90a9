//! Look-around without backtracking.
//!
//! `^(?=.*[0-9])(?!x)[a-z0-9]+$` is equivalent to three patterns, because each part starts at a
//! known position: a text must match `^(?:.*[0-9])` and `^[a-z0-9]+$`, and must not match `^(?:x)`.
//! This also holds after a fixed number of characters, as in `^[a-z](?!.*--)[a-z-]*$`.
//!
//! Look-around at the end of a pattern has equivalents, too: `a+(?=b)` matches where `a+b` does,
//! and `^a+(?<!b)$` matches where `^a+$` does and `b$` does not. A text matches `^(?:(?!a).)*$` if
//! it matches `^.*$` and does not contain `a`.

/// First characters of quantifiers.
const REPEATS: [char; 4] = ['*', '+', '?', '{'];

/// Letters that, after a backslash, match one character. Other letters and digits after a backslash
/// denote an anchor, a reference to a group or an encoded character.
const LETTERS: &str = "dDsSwWfnrtv";

/// Maximum number of parts of one pattern, each of which is matched separately.
pub(super) const MOST: usize = 16;

/// One of several patterns that together are equivalent to a pattern with look-around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// True if a string must match the pattern, false if it must not.
    pub(super) is_wanted: bool,
    pub(super) pattern: String,
}

/// Splits a pattern with look-around into equivalent parts. Returns `None` if the pattern has no
/// look-around, if the position of the look-around depends on the text, or if there are more than
/// [`MOST`] parts.
pub(super) fn parts(pattern: &str) -> Option<Vec<Part>> {
    let mut parts = split_tempered_dot(pattern)
        .or_else(|| at_the_end(pattern))
        .or_else(|| at_the_beginning(pattern))?;
    let mut known = Vec::new();
    parts.retain(|part| {
        let is_new = !known.contains(part);
        if is_new {
            known.push(part.clone());
        }
        is_new
    });
    (parts.len() <= MOST).then_some(parts)
}

/// Splits a tempered dot, `^(?:(?!a).)*$`, also with a capturing group or `+`. `a` must start with
/// a single character.
fn split_tempered_dot(pattern: &str) -> Option<Vec<Part>> {
    let rest = pattern.strip_prefix('^')?.strip_prefix('(')?;
    let rest = rest.strip_prefix("?:").unwrap_or(rest);
    let (is_wanted, inside, behind) = look_ahead(rest)?;
    let (repeat, end) = behind.strip_prefix(".)")?.split_at_checked(1)?;
    let is_whole = !is_wanted && matches!(repeat, "*" | "+") && end == "$";
    // A pattern that matches the empty string matches everywhere.
    if !is_whole || fixed(inside).is_none() || outside(inside, '|').is_some() {
        return None;
    }
    let whole = Part { is_wanted: true, pattern: format!("^.{repeat}$") };
    Some(vec![Part { is_wanted: false, pattern: inside.to_owned() }, whole])
}

/// Splits positive look-ahead at the end, and look-behind before a final `$`. The text before it
/// may have look-ahead at its beginning.
fn at_the_end(pattern: &str) -> Option<Vec<Part>> {
    if outside(pattern, '|').is_some() {
        return None;
    }
    let start = last_group(pattern.strip_suffix('$').unwrap_or(pattern))?;
    let (before, group) = pattern.split_at(start);
    let whole = |rest: String| {
        let whole = vec![Part { is_wanted: true, pattern: rest.clone() }];
        if has_look_around(&rest) { at_the_beginning(&rest) } else { Some(whole) }
    };
    if let Some(inside) = group.strip_prefix("(?=").and_then(|rest| rest.strip_suffix(')')) {
        return whole(format!("{before}(?:{inside})"));
    }
    let group = group.strip_suffix(")$")?;
    let (is_wanted, inside) = match group.strip_prefix("(?<=") {
        Some(inside) => (true, inside),
        None => (false, group.strip_prefix("(?<!")?),
    };
    let mut parts = whole(format!("{before}$"))?;
    parts.push(Part { is_wanted, pattern: format!("(?:{inside})$") });
    Some(parts)
}

fn has_look_around(pattern: &str) -> bool {
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|group| pattern.contains(group))
}

/// Returns the start of the top-level group at the end of a pattern.
fn last_group(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let start = at + outside(&text[at..], '(')?;
        let end = start + 1 + outside(&text[start + 1..], ')')?;
        if end + 1 == text.len() {
            return Some(start);
        }
        at = end + 1;
    }
}

/// Splits look-ahead at the beginning, or after a fixed number of characters.
fn at_the_beginning(pattern: &str) -> Option<Vec<Part>> {
    let mut rest = pattern.strip_prefix('^')?;
    let mut before = "^".to_owned();
    let mut parts = Vec::new();
    loop {
        if let Some((is_wanted, inside, behind)) = look_ahead(rest) {
            parts.push(Part { is_wanted, pattern: format!("{before}(?:{inside})") });
            rest = behind;
        } else if let Some(length) = fixed(rest) {
            before.push_str(&rest[..length]);
            rest = &rest[length..];
        } else {
            break;
        }
    }
    // The look-ahead applies only to the first of several alternatives.
    if parts.is_empty() || outside(rest, '|').is_some() {
        return None;
    }
    parts.push(Part { is_wanted: true, pattern: format!("{before}{rest}") });
    Some(parts)
}

/// Parses a look-ahead at the beginning. Returns whether it is positive, its content, and the text
/// after it.
fn look_ahead(text: &str) -> Option<(bool, &str, &str)> {
    let (is_wanted, text) = match text.strip_prefix("(?=") {
        Some(text) => (true, text),
        None => (false, text.strip_prefix("(?!")?),
    };
    let end = outside(text, ')')?;
    let behind = &text[end + 1..];
    (!behind.starts_with(REPEATS)).then_some((is_wanted, &text[..end], behind))
}

/// Returns the length of an element at the beginning that always matches the same number of
/// characters.
fn fixed(text: &str) -> Option<usize> {
    let sign = text.chars().next()?;
    let length = match sign {
        '\\' => {
            let escaped = text[1..].chars().next()?;
            if escaped.is_alphanumeric() && !LETTERS.contains(escaped) {
                return None;
            }
            1 + escaped.len_utf8()
        }
        '[' => class(text)?,
        '^' | '$' | '(' | ')' | ']' | '}' | '|' => return None,
        _ if REPEATS.contains(&sign) => return None,
        _ => sign.len_utf8(),
    };
    let Some(count) = text[length..].strip_prefix('{') else {
        return (!text[length..].starts_with(REPEATS)).then_some(length);
    };
    let (count, behind) = count.split_once('}')?;
    let is_number = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !behind.starts_with(REPEATS)).then_some(length + count.len() + 2)
}

/// Returns the length of the character class at the beginning.
fn class(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("[^").or_else(|| text.strip_prefix('['))?;
    // Some engines read `[]` and `[^]` as complete classes, and others read `]` as the first member
    // of the class.
    if inside.starts_with(']') {
        return None;
    }
    let mut is_escaped = false;
    let end = inside.find(|sign: char| {
        let ends = sign == ']' && !is_escaped;
        is_escaped = sign == '\\' && !is_escaped;
        ends
    })?;
    Some(text.len() - inside.len() + end + 1)
}

/// Returns the byte offset of the first character `wanted` that is outside of groups, classes and
/// escapes; `None` if there is none.
fn outside(text: &str, wanted: char) -> Option<usize> {
    let (mut depth, mut in_class, mut is_escaped) = (0_usize, false, false);
    for (at, sign) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
            continue;
        }
        match sign {
            '\\' => is_escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            _ if in_class => {}
            _ if sign == wanted && depth == 0 => return Some(at),
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parts;

    /// Returns the parts, with `!` before those that must not match.
    fn taken_apart(pattern: &str) -> Option<Vec<String>> {
        let parts = parts(pattern)?.into_iter();
        let mark = |is_wanted: bool| if is_wanted { "" } else { "!" };
        Some(parts.map(|part| format!("{}{}", mark(part.is_wanted), part.pattern)).collect())
    }

    #[test]
    fn look_around_at_a_known_position_is_split() {
        let cases = [
            (r"^(?=.*[A-Z])(?!a|b).{8,}$", vec![r"^(?:.*[A-Z])", r"!^(?:a|b)", r"^.{8,}$"]),
            (r"^(?!^[-+.]*$)[+-]?0*\d*$", vec![r"!^(?:^[-+.]*$)", r"^[+-]?0*\d*$"]),
            (r"^[a-z](?!.*--)[a-z-]*$", vec![r"!^[a-z](?:.*--)", r"^[a-z][a-z-]*$"]),
            (r"^\w{2}\.(?=[)\]]|\))", vec![r"^\w{2}\.(?:[)\]]|\))"]),
            (r"^\w{2}\.(?=[)\]]|\))a", vec![r"^\w{2}\.(?:[)\]]|\))", r"^\w{2}\.a"]),
            (r"^(?!(?:a(b)))", vec![r"!^(?:(?:a(b)))", "^"]),
            (r"^(?:(?!--).)+$", vec!["!--", "^.+$"]),
            (r"^((?!foo).)*$", vec!["!foo", "^.*$"]),
            (r"^\w+(?=@)", vec![r"^\w+(?:@)"]),
            (r"(a|b)(?=[)]c)", vec![r"(a|b)(?:[)]c)"]),
            (r"^[a-z]+(?<!-)$", vec!["^[a-z]+$", "!(?:-)$"]),
            (r"^(?!x)[a-z]+(?<=e)$", vec!["!^(?:x)", "^[a-z]+$", "(?:e)$"]),
            (r"^(?=a)(?=a)b", vec!["^(?:a)", "^b"]),
        ];
        for (pattern, expected) in cases {
            let expected = expected.into_iter().map(str::to_owned).collect();
            assert_eq!(taken_apart(pattern), Some(expected), "{pattern}");
        }
    }

    #[test]
    fn patterns_without_a_known_equivalent_are_not_split() {
        for pattern in [
            "",
            "^",
            "^abc$",
            "(?=a)b",
            "^a*(?=b)c",
            "^(?:(?!a*).)*$",
            "^(?:(?!a).)*",
            "^a*(?!b)",
            "a|b(?=c)",
            "(?<!a)b",
            "^a{2,3}(?=b)c",
            "^a{2}?(?=b)c",
            "^(a)(?=b)c",
            "^(?=a)b|c",
            "^(?=a)*b",
            "^(?=a",
            "^(?<=a)b",
            r"^\b(?=b)c",
            r"^\1(?=b)c",
            "^[](?=b)]",
            "^[a",
            r"^\",
        ] {
            assert_eq!(taken_apart(pattern), None, "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn splitting_any_pattern_never_panics(
            pattern in r"\^?([(?=!)|\[\]{}\\*0-9a^$\u{e9}]|\(\?[=!]){0,24}",
        ) {
            let _ = parts(&pattern);
        }
    }
}
