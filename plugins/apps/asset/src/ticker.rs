//! Tickers: letters for the United States, `0700.HK`, `600519.SS` and `000001.SZ`.

/// Digits of a Hong Kong code, at least.
const HONG_KONG_DIGITS: usize = 4;

/// Digits of a mainland code.
const MAINLAND_DIGITS: usize = 6;

/// Letters of an American symbol, at most.
const SYMBOL_LETTERS: usize = 5;

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

/// How surely a text is a ticker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Given {
    /// A ticker as an exchange writes it.
    Whole(String),
    /// A short number, which is a Hong Kong code if it is a ticker at all.
    Number(String),
    /// Anything else, or nothing.
    None,
}

/// What a user or a model gave as a ticker.
pub(crate) fn given(text: &str) -> Given {
    let ticker = normalize(text);
    if is_number(text.trim()) && matches!(ticker.rsplit_once('.'), Some((_, "HK"))) {
        return Given::Number(ticker);
    }
    if is_whole(&ticker) { Given::Whole(ticker) } else { Given::None }
}

fn is_whole(ticker: &str) -> bool {
    let Some((code, suffix)) = ticker.rsplit_once('.') else {
        let is_placeholder = ticker == crate::state::UNKNOWN_TICKER;
        return (1..=SYMBOL_LETTERS).contains(&ticker.len())
            && is_letters(ticker)
            && !is_placeholder;
    };
    match suffix {
        "HK" => is_number(code) && (HONG_KONG_DIGITS..=HONG_KONG_DIGITS + 1).contains(&code.len()),
        "SS" | "SZ" => is_number(code) && bare(code) == ticker,
        // A share class, or the suffix of another exchange.
        _ => {
            let is_code = code.bytes().all(|byte| byte.is_ascii_alphanumeric());
            is_code && (1..=6).contains(&code.len()) && suffix.len() <= 3 && is_letters(suffix)
        }
    }
}

fn is_letters(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase())
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
    use super::{Given, given, normalize};

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

    #[test]
    fn a_whole_ticker_is_told_from_a_number_and_from_a_name() {
        let whole = |ticker: &str| Given::Whole(ticker.to_owned());
        for (text, expected) in [
            ("aapl", whole("AAPL")),
            ("BRK.B", whole("BRK.B")),
            ("SAP.DE", whole("SAP.DE")),
            ("700.HK", whole("0700.HK")),
            ("600519", whole("600519.SS")),
            ("300750.sz", whole("300750.SZ")),
            ("700", Given::Number("0700.HK".to_owned())),
            ("0700", Given::Number("0700.HK".to_owned())),
            ("600519.SZ", Given::None),
            ("12", Given::None),
            ("TENCENT", Given::None),
            ("腾讯", Given::None),
            ("UNKNOWN", Given::None),
            (" ", Given::None),
        ] {
            assert_eq!(given(text), expected, "{text}");
        }
    }
}
