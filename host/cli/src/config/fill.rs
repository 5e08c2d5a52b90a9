//! Secrets in texts of the configuration.

/// How a text names a secret, as in headers of guests.
const OPENING: &str = "{{secret:";
const CLOSING: &str = "}}";

/// Finds the value of a secret, or says why there is none.
pub type FindSecret<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// A text with its secrets.
pub(crate) fn filled(text: &str, secret: FindSecret<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPENING) {
        let Some((name, after)) = after.split_once(CLOSING) else { break };
        out.push_str(before);
        out.push_str(&secret(name)?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_filled_in() {
        let secret = |name: &str| match name {
            "X" => Ok("x-1".to_owned()),
            _ => Err(format!("the secret `{name}` is not set")),
        };
        let cases = [
            ("Bearer {{secret:X}}!", Ok("Bearer x-1!")),
            ("{{secret:X", Ok("{{secret:X")),
            ("{{secret:Y}}", Err("the secret `Y` is not set")),
        ];
        for (text, expected) in cases {
            let found = filled(text, &secret);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
        }
    }
}
