//! Compiled units of a build, from cargo's report (`--timings`).

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::files::read;
use crate::shell::target_folder;

/// Cargo's report of the last build, below the target folder.
const REPORT: &str = "cargo-timings/cargo-timing.html";

/// The text before the list of units in the report.
const UNITS: &str = "const UNIT_DATA = ";

/// A compiled crate or test binary, or a build script that ran.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unit {
    /// The package, with the target if its name differs.
    pub(crate) name: String,
    /// Wall time in seconds, while other units may compile concurrently.
    pub(crate) seconds: f64,
}

/// Returns the units that the last build compiled. The report also lists units that were up to
/// date.
///
/// # Errors
///
/// If the report is missing or malformed.
pub(crate) fn units() -> Result<Vec<Unit>> {
    let file = target_folder().join(REPORT);
    let text = read(&file)?;
    units_of(&text).with_context(|| format!("{} has no list of units", file.display()))
}

fn units_of(report: &str) -> Result<Vec<Unit>> {
    let (_, rest) = report.split_once(UNITS).context("there is no `UNIT_DATA`")?;
    let list = serde_json::Deserializer::from_str(rest).into_iter::<Vec<Value>>().next();
    let list = list.context("it is empty")??;
    let was_compiled = |unit: &&Value| unit["duration"].as_f64().is_some_and(|it| it > 0.0);
    let unit = |unit: &Value| {
        let text = |key: &str| unit[key].as_str().unwrap_or_default().trim();
        let name = format!("{} {}", text("name"), text("target"));
        Unit {
            name: name.trim().to_owned(),
            seconds: unit["duration"].as_f64().unwrap_or_default(),
        }
    };
    Ok(list.iter().filter(was_compiled).map(unit).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_units_are_parsed_from_the_report() {
        let report = r#"<html>const UNIT_DATA = [{"i":0,"name":"redb","target":"","duration":2.5},
            {"i":1,"name":"wattle","target":" bin \"wattle\" (test)","duration":1.0},
            {"i":2,"name":"serde","target":"","duration":0.0}];
            const CONCURRENCY_DATA = [];"#;
        let unit = |name: &str, seconds| Unit { name: name.to_owned(), seconds };
        let expected = [unit("redb", 2.5), unit(r#"wattle bin "wattle" (test)"#, 1.0)];
        assert_eq!(units_of(report).unwrap(), expected);
        assert!(units_of("<html>").is_err());
    }
}
