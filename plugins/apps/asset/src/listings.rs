//! The app's table of well-known listings as text, with an index by ticker.

use std::collections::HashMap;
use std::sync::LazyLock;

/// One listing per line: `ticker,Chinese name,English name,further names`, with slashes between the
/// further names.
pub(crate) const TICKERS: &str = include_str!("../data/tickers.csv");

/// Line numbers by ticker.
static PLACES: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
    let lines = TICKERS.lines().enumerate();
    lines.filter_map(|(at, line)| Some((line.split_once(',')?.0, at))).collect()
});

/// Returns the number of the line with exactly this ticker. Lines are numbered from 0.
pub(crate) fn place(ticker: &str) -> Option<usize> {
    PLACES.get(ticker).copied()
}

/// Returns true if the table has exactly this ticker.
pub(crate) fn has(ticker: &str) -> bool {
    place(ticker).is_some()
}

#[cfg(test)]
mod tests {
    use super::{TICKERS, has, place};

    #[test]
    fn only_complete_tickers_match() {
        assert!(has("BRK.B") && has("BF.B") && has("0700.HK"));
        assert!(!has("JPM.C") && !has("BRK") && !has("brk.b") && !has(""));
    }

    #[test]
    fn place_is_the_line_number() {
        let line = TICKERS.lines().nth(place("0700.HK").unwrap()).unwrap();
        assert!(line.starts_with("0700.HK,"), "{line}");
    }
}
