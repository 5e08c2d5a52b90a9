//! The app's own list of well-known listings, as text.

/// `ticker,Chinese name,English name,further names with slashes between`, one security a line.
pub(crate) const TICKERS: &str = include_str!("../data/tickers.csv");

/// Whether the list has exactly this ticker.
pub(crate) fn has(ticker: &str) -> bool {
    TICKERS.lines().any(|line| line.split_once(',').is_some_and(|(listed, _)| listed == ticker))
}

#[cfg(test)]
mod tests {
    use super::has;

    #[test]
    fn only_a_whole_ticker_counts() {
        assert!(has("BRK.B") && has("BF.B") && has("0700.HK"));
        assert!(!has("JPM.C") && !has("BRK") && !has("brk.b") && !has(""));
    }
}
