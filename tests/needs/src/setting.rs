//! Numbers of the environment.

use std::env;
use std::ffi::OsString;
use std::str::FromStr;

/// The number in an environment variable, such as `WATTLE_RIVAL_RUNS=300`; `None` without the variable.
///
/// # Panics
///
/// If the variable has another value: a long trial that is not made would pass for one that was.
pub fn number<N: FromStr>(variable: &str) -> Option<N> {
    parse(variable, env::var_os(variable))
}

fn parse<N: FromStr>(variable: &str, value: Option<OsString>) -> Option<N> {
    let value = value?;
    match value.to_str().map(str::parse) {
        Some(Ok(number)) => Some(number),
        _ => panic!("`{variable}` must be a number, but is `{}`", value.display()),
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
    #[should_panic(expected = "`RUNS` must be a number, but is `many`")]
    fn another_value_fails_the_test() {
        let _ = parse::<usize>("RUNS", Some("many".into()));
    }
}
