//! The currency in which a security is traded.

use crate::state::UNKNOWN_TICKER;
use crate::ticker::{self, Given};

/// Without a suffix and without a word from a service, a listing is taken for an American one.
const DEFAULT: &str = "USD";

/// The currency of a ticker. A known suffix decides; else what the service that found it says.
/// Nothing for a ticker or an exchange that nobody knows: a guess would book it in the wrong
/// currency.
pub(crate) fn of(ticker: &str, service: Option<&str>) -> String {
    let is_surely_one = !matches!(ticker::given(ticker), Given::Other(_) | Given::Unsure(_));
    let ticker = ticker::normalize(ticker).to_uppercase();
    if ticker.is_empty() || ticker == UNKNOWN_TICKER {
        return String::new();
    }
    match ticker.rsplit_once('.').map(|(_, suffix)| suffix) {
        Some("HK") => "HKD".to_owned(),
        Some("SS" | "SZ" | "BJ") => "CNY".to_owned(),
        _ => {
            let named = service.map(|name| name.trim().to_uppercase());
            let default = if is_surely_one { DEFAULT } else { "" };
            named.filter(|name| !name.is_empty()).unwrap_or_else(|| default.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn the_suffix_wins_over_the_service() {
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
    fn s0_41_s0_45_the_exchange_counts_in_whatever_form_and_is_not_guessed() {
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
        ] {
            assert_eq!(of(ticker, service), currency, "{ticker} {service:?}");
        }
    }
}
