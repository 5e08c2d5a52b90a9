//! The currency in which a security is traded.

use crate::state::{Row, UNKNOWN_TICKER};
use crate::ticker::{self, Given};

/// Currency of a ticker without a suffix if no service names one: the listing counts as American.
const DEFAULT: &str = "USD";

/// Returns the currency of a ticker. A known suffix takes precedence over the currency that a
/// service names. Returns an empty string for an unknown ticker, and for a code of an unknown
/// exchange unless a service names its currency: a guess would book the row in the wrong currency.
pub(crate) fn of(ticker: &str, service: Option<&str>) -> String {
    let is_surely_one = matches!(ticker::given(ticker), Given::Whole(_) | Given::Number(_));
    let ticker = ticker::normalize(ticker).to_uppercase();
    if ticker.is_empty() || ticker == UNKNOWN_TICKER {
        return String::new();
    }
    match ticker.rsplit_once('.').map(|(_, suffix)| suffix) {
        Some("HK") => "HKD".to_owned(),
        Some("SS" | "SZ" | "BJ") => "CNY".to_owned(),
        _ => {
            let default = if is_surely_one { DEFAULT } else { "" };
            named(service).unwrap_or_else(|| default.to_owned())
        }
    }
}

/// Returns true if the currency of a ticker is only an assumption: the ticker has the suffix of
/// another country, and no service names its currency.
pub(crate) fn is_assumed(ticker: &str, service: Option<&str>) -> bool {
    ticker::is_foreign(ticker) && named(service).is_none()
}

/// Returns the currency of a row, otherwise the currency that its ticker determines, otherwise an
/// empty string.
pub(crate) fn of_row(row: &Row) -> String {
    let ticker = row.text("ticker");
    match row.text("currency") {
        "" if is_assumed(ticker, None) => String::new(),
        "" => of(ticker, None),
        currency => currency.to_uppercase(),
    }
}

/// Returns true if a row has a ticker and the row has no currency that is given or that follows
/// from the ticker.
pub(crate) fn is_missing(row: &Row) -> bool {
    let ticker = row.text("ticker");
    let has_ticker = !ticker.is_empty() && !ticker.eq_ignore_ascii_case(UNKNOWN_TICKER);
    has_ticker && of_row(row).is_empty()
}

fn named(service: Option<&str>) -> Option<String> {
    let named = service.map(|name| name.trim().to_uppercase());
    named.filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::{is_missing, of, of_row};
    use crate::state::Row;

    #[test]
    fn suffix_takes_precedence_over_the_service() {
        for (ticker, service, currency) in [
            ("0700.HK", None, "HKD"),
            ("0700.HK", Some("usd"), "HKD"),
            ("600519.SS", None, "CNY"),
            ("000001.sz", None, "CNY"),
            ("920748.BJ", Some("usd"), "CNY"),
            ("AAPL", None, "USD"),
            ("BRK.B", None, "USD"),
            ("SAP", Some("eur"), "EUR"),
            ("SAP", Some(" "), "USD"),
            ("UNKNOWN", Some("usd"), ""),
            ("", None, ""),
        ] {
            assert_eq!(of(ticker, service), currency, "{ticker} {service:?}");
        }
    }

    #[test]
    fn s0_41_s0_45_currency_follows_from_every_form_of_a_ticker_and_is_not_guessed() {
        for (ticker, service, currency) in [
            ("sh600519", None, "CNY"),
            ("920748", None, "CNY"),
            ("700 HK", None, "HKD"),
            ("BRK-B", None, "USD"),
            ("12", None, ""),
            ("^HSI", None, ""),
            ("US0378331005", None, ""),
            ("LON:VOD", None, ""),
            ("LON:VOD", Some("gbp"), "GBP"),
            ("腾讯", None, ""),
            ("TENCENT", None, ""),
            ("N/A", None, ""),
            ("VOD.L", None, "USD"),
            ("VOD.L", Some("gbp"), "GBP"),
        ] {
            assert_eq!(of(ticker, service), currency, "{ticker} {service:?}");
        }
    }

    #[test]
    fn s0_45_currency_is_missing_if_the_ticker_does_not_determine_it() {
        for (ticker, said, currency, lacks) in [
            ("AAPL", "", "USD", false),
            ("AAPL", " cad ", "CAD", false),
            ("0700.HK", "", "HKD", false),
            ("LON:VOD", "", "", true),
            ("LON:VOD", "gbp", "GBP", false),
            ("113050", "", "", true),
            ("7203.T", "", "", true),
            ("7203.T", "jpy", "JPY", false),
            ("UNKNOWN", "", "", false),
            ("", "", "", false),
        ] {
            let row = json!({"ticker": ticker, "currency": said});
            let row: Row = serde_json::from_value(row).unwrap();
            assert_eq!(of_row(&row), currency, "{ticker} {said}");
            assert_eq!(is_missing(&row), lacks, "{ticker} {said}");
        }
    }
}
