//! JSON arguments: inline, from a file, or from stdin.

use std::io::Read as _;

use serde_json::Value;

use crate::error::Error;

/// Parses a JSON argument.
///
/// # Errors
///
/// [`Error::Usage`] if the argument is not JSON, [`Error::File`] if the file cannot be read.
pub(super) fn parse(argument: &str) -> Result<Value, Error> {
    let (text, origin) = match argument.strip_prefix('@') {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(Error::file("read", path))?;
            (text, format!("`{path}`"))
        }
        None if argument == "-" => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(Error::file("read", "stdin"))?;
            (text, "stdin".to_owned())
        }
        None => (argument.to_owned(), format!("`{}`", shortened(argument))),
    };
    serde_json::from_str(&text).map_err(|error| Error::Usage {
        message: format!("{origin} is not JSON: {error}"),
        hint: "write JSON in single quotes, `@file` for a file, or `-` for stdin".into(),
    })
}

/// Parses an answer. The interrupt id is empty if the argument has none.
///
/// # Errors
///
/// Those of [`parse`].
pub(super) fn parse_answer(argument: &str) -> Result<(String, Value), Error> {
    let named = argument.split_once('=').filter(|(id, _)| is_id(id));
    match named {
        Some((id, rest)) => Ok((id.to_owned(), parse(rest)?)),
        None => Ok((String::new(), parse(argument)?)),
    }
}

/// Interrupt ids are hexadecimal. No JSON value has `=` after a prefix of hexadecimal digits.
fn is_id(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn shortened(text: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 40;
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((index, _)) => format!("{}...", &text[..index]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_can_name_their_interrupt() {
        assert_eq!(parse_answer("ab12=true").unwrap(), ("ab12".into(), Value::Bool(true)));
        assert_eq!(parse_answer("{\"a\":\"x=y\"}").unwrap().0, "");
        assert_eq!(parse_answer("\"a=b\"").unwrap().1, "a=b");
    }

    #[test]
    fn invalid_json_is_refused() {
        insta::assert_snapshot!(parse("{input: 1}").unwrap_err(), @"
        `{input: 1}` is not JSON: key must be a string at line 1 column 2
          hint: write JSON in single quotes, `@file` for a file, or `-` for stdin
        ");
    }
}
