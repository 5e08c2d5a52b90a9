//! Values of the environment, such as the number of trials.

use std::env;
use std::ffi::OsString;
use std::fmt::Display;
use std::str::FromStr;

/// The value of an environment variable, such as `WATTLE_RIVAL_RUNS=300`; `None` without the variable.
///
/// # Panics
///
/// If the variable has a value that is no `T`: a long trial that is not made would pass for one that was.
#[expect(clippy::disallowed_methods, reason = "people set it for one execution of the tests")]
pub fn setting<T: FromStr<Err: Display>>(variable: &str) -> Option<T> {
    parse(variable, env::var_os(variable))
}

fn parse<T: FromStr<Err: Display>>(variable: &str, value: Option<OsString>) -> Option<T> {
    let value = value?;
    // What is no UTF-8 is no value either.
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
    fn a_number_is_read() {
        assert_eq!(parse("RUNS", Some("300".into())), Some(300_usize));
        assert_eq!(parse::<usize>("RUNS", None), None);
    }

    #[test]
    #[should_panic(expected = "`RUNS` cannot be `many`: invalid digit found in string")]
    fn another_value_fails_the_test() {
        let _ = parse::<usize>("RUNS", Some("many".into()));
    }
}
