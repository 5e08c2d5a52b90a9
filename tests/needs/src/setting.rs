//! Values of the environment, such as the number of trials.

use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::str::FromStr;

/// Returns the value of an environment variable, such as `WATTLE_RIVAL_RUNS=300`, or `None` if it
/// is not set.
///
/// # Panics
///
/// If the value does not parse as `T`. Otherwise a long trial that was never made would count as
/// passed.
#[expect(clippy::disallowed_methods, reason = "a developer sets it for one execution of the tests")]
pub fn setting<T: FromStr<Err: Display>>(variable: &str) -> Option<T> {
    parse(variable, env::var_os(variable))
}

fn parse<T: FromStr<Err: Display>>(variable: &str, value: Option<OsString>) -> Option<T> {
    let value = value?;
    // A value that is not UTF-8 is invalid, too.
    let text = value.to_string_lossy();
    match text.parse() {
        Ok(setting) => Some(setting),
        Err(error) => panic!("`{variable}` cannot be `{text}`: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed() {
        assert_eq!(parse("RUNS", Some("300".into())), Some(300_usize));
        assert_eq!(parse::<usize>("RUNS", None), None);
    }

    #[test]
    #[should_panic(expected = "`RUNS` cannot be `many`: invalid digit found in string")]
    fn invalid_values_panic() {
        let _ = parse::<usize>("RUNS", Some("many".into()));
    }
}
