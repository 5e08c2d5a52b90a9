//! Identifies securities with the table, as a small model would from memory.

use serde_json::{Map, Value, json};

use super::securities::{SECURITIES, Security};

/// Maximum number of securities in a result.
const MAX_FOUND: usize = 3;

/// Returns the securities whose ticker or name occurs in `query`, the longest match first.
pub(super) fn lookup(query: &str) -> Vec<Map<String, Value>> {
    let lower = query.to_lowercase();
    let mut found: Vec<(usize, &Security)> = SECURITIES
        .iter()
        .filter_map(|security| Some((match_length(&lower, security)?, security)))
        .collect();
    found.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    found.truncate(MAX_FOUND);
    found.into_iter().map(|(_, security)| row(security)).collect()
}

fn row(security: &Security) -> Map<String, Value> {
    Map::from_iter([
        ("ticker".to_owned(), json!(security.ticker)),
        ("name".to_owned(), json!(security.name)),
        ("nameCN".to_owned(), json!(security.chinese)),
        ("primaryExchange".to_owned(), json!(security.exchange)),
        ("currencyName".to_owned(), json!(security.currency)),
    ])
}

/// Returns the length of the longest name or ticker of the security that occurs in the query.
fn match_length(lower: &str, security: &Security) -> Option<usize> {
    let ticker = security.ticker.to_lowercase();
    let digits = ticker.split('.').next().filter(|code| code.bytes().all(|b| b.is_ascii_digit()));
    let names = security.names().map(str::to_lowercase);
    names
        .chain([ticker.clone()])
        .chain(digits.map(str::to_owned))
        .filter(|name| contains_word(lower, name))
        .map(|name| name.chars().count())
        .max()
}

fn contains_word(lower: &str, name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric();
    lower.match_indices(name).any(|(at, _)| {
        let before = lower[..at].chars().next_back();
        let after = lower[at + name.len()..].chars().next();
        !name.is_ascii() || !(before.is_some_and(is_letter) || after.is_some_and(is_letter))
    })
}

#[cfg(test)]
mod tests {
    use super::lookup;

    fn check(query: &str, tickers: &[&str]) {
        let found = lookup(query);
        let shown: Vec<&str> = found.iter().filter_map(|row| row["ticker"].as_str()).collect();
        assert_eq!(shown, tickers, "{query}");
    }

    #[test]
    fn names_and_tickers_are_found() {
        check("小米", &["1810.HK"]);
        check("栖岸科技", &["8999.HK"]);
        check("股票：宁德时代", &["300750.SZ"]);
        check("Palantir", &["PLTR"]);
        check("aapl", &["AAPL"]);
        check("600519", &["600519.SS"]);
        check("腾讯控股", &["0700.HK"]);
    }

    #[test]
    fn unknown_names_have_no_result() {
        check("青杉玩偶", &[]);
        check("Pop Mart", &[]);
        check("", &[]);
    }

    #[test]
    fn rows_have_the_requested_fields() {
        let row = &lookup("小米")[0];
        assert_eq!(row["nameCN"], "小米集团-W");
        assert_eq!(row["primaryExchange"], "XHKG");
        assert_eq!(row["currencyName"], "hkd");
    }
}
