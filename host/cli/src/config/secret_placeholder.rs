//! Placeholders of secrets in the configuration.

/// Start of a placeholder. Placeholders in headers of guests have the same syntax.
const PREFIX: &str = "{{secret:";
const SUFFIX: &str = "}}";

/// Returns the value of a secret, or a message with the reason why it is missing.
pub type FindSecret<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Replaces the placeholders in a string with the values of their secrets.
pub(crate) fn expand_secrets(text: &str, secret: FindSecret<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(PREFIX) {
        let Some((name, after)) = after.split_once(SUFFIX) else { break };
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
    fn placeholders_of_secrets_are_replaced() {
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
            let found = expand_secrets(text, &secret);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
        }
    }
}
