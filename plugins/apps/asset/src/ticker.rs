//! Tickers: letters for the United States, `0700.HK`, `600519.SS` and `000001.SZ`.

/// Digits of a Hong Kong code, at least.
const HONG_KONG_DIGITS: usize = 4;

/// Digits of a mainland code.
const MAINLAND_DIGITS: usize = 6;

/// Brings a ticker into the usual form: upper case, Hong Kong codes with four digits, `.SS` for
/// Shanghai. A bare mainland code gets its exchange.
pub(crate) fn normalize(text: &str) -> String {
    let ticker = text.trim().to_uppercase();
    match ticker.split_once('.') {
        Some((code, "HK")) if is_number(code) => hong_kong(code),
        Some((code, "SH" | "SS")) => format!("{code}.SS"),
        None if is_number(&ticker) => bare(&ticker),
        _ => ticker,
    }
}

fn hong_kong(code: &str) -> String {
    let code = code.trim_start_matches('0');
    format!("{code:0>HONG_KONG_DIGITS$}.HK")
}

/// Shanghai's codes begin with 5, 6 or 9, Shenzhen's with 0, 1, 2 or 3.
fn bare(code: &str) -> String {
    match (code.len(), code.as_bytes().first()) {
        (MAINLAND_DIGITS, Some(b'5' | b'6' | b'9')) => format!("{code}.SS"),
        (MAINLAND_DIGITS, Some(b'0'..=b'3')) => format!("{code}.SZ"),
        (3..=5, _) => hong_kong(code),
        _ => code.to_owned(),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::normalize;

    #[test]
    fn tickers_get_their_usual_form() {
        for (text, ticker) in [
            (" aapl ", "AAPL"),
            ("brk.b", "BRK.B"),
            ("700.hk", "0700.HK"),
            ("00700.HK", "0700.HK"),
            ("0700", "0700.HK"),
            ("80700.HK", "80700.HK"),
            ("600519", "600519.SS"),
            ("600519.sh", "600519.SS"),
            ("000001", "000001.SZ"),
            ("300750.SZ", "300750.SZ"),
            ("UNKNOWN", "UNKNOWN"),
        ] {
            assert_eq!(normalize(text), ticker, "{text}");
        }
    }
}
