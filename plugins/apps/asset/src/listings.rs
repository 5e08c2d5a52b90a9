//! The app's own list of well-known listings, as text, and where in it each ticker is.

use std::collections::HashMap;
use std::sync::LazyLock;

/// `ticker,Chinese name,English name,further names with slashes between`, one security a line.
pub(crate) const TICKERS: &str = include_str!("../data/tickers.csv");

/// Numbers of lines by ticker.
static PLACES: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
    let lines = TICKERS.lines().enumerate();
    lines.filter_map(|(at, line)| Some((line.split_once(',')?.0, at))).collect()
});

/// The number of the line with exactly this ticker, the first of which is 0.
pub(crate) fn place(ticker: &str) -> Option<usize> {
    PLACES.get(ticker).copied()
}

/// Whether the list has exactly this ticker.
pub(crate) fn has(ticker: &str) -> bool {
    place(ticker).is_some()
}

#[cfg(test)]
mod tests {
    use super::{TICKERS, has, place};

    #[test]
    fn only_a_whole_ticker_counts() {
        assert!(has("BRK.B") && has("BF.B") && has("0700.HK"));
        assert!(!has("JPM.C") && !has("BRK") && !has("brk.b") && !has(""));
    }

    #[test]
    fn a_place_is_that_of_the_line() {
        let line = TICKERS.lines().nth(place("0700.HK").unwrap()).unwrap();
        assert!(line.starts_with("0700.HK,"), "{line}");
    }
}
