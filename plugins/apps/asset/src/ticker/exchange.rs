//! Exchanges: the names that services use for them, and the codes that they list.

/// Minimum digits of a Hong Kong code in its usual form.
const HONG_KONG_DIGITS: usize = 4;

/// Maximum digits of a Hong Kong code.
const MOST_HONG_KONG_DIGITS: usize = 5;

/// Digits of a mainland code.
const MAINLAND_DIGITS: usize = 6;

/// Maximum letters of an American symbol.
pub(super) const SYMBOL_LETTERS: usize = 5;

/// Country before or after an American symbol. It is not a symbol itself.
const AMERICA: &str = "US";

/// Names before or after a code: those of exchanges, of data services and of ISO 10383. `BSE` is
/// omitted, because it means Bombay and Beijing.
const NAMES: [(Exchange, &[&str]); 9] = [
    (Exchange::America, &[AMERICA, "NASDAQ", "NASDAQGS", "NASDAQGM", "NASDAQCM", "XNAS"]),
    (Exchange::America, &["NYSE", "NYSEARCA", "NYSEMKT", "NYSEAMERICAN", "XNYS", "ARCX"]),
    (Exchange::America, &["AMEX", "XASE", "BATS", "CBOE"]),
    (Exchange::America, &["OTC", "OTCMKTS", "OTCBB", "OTCPK", "OTCQB", "OTCQX"]),
    (Exchange::HongKong, &["HK", "HKG", "HKEX", "HKSE", "SEHK", "XHKG"]),
    (Exchange::Mainland, &["CN", "CH"]),
    (Exchange::Shanghai, &["SS", "SH", "SHA", "SHG", "SHH", "SSE", "SHSE", "XSHG"]),
    (Exchange::Shenzhen, &["SZ", "SHE", "SHZ", "SZSE", "XSHE"]),
    (Exchange::Beijing, &["BJ", "BJSE"]),
];

/// Suffixes that Reuters writes after a dot.
const REUTERS: [(Exchange, &[&str]); 1] =
    [(Exchange::America, &["K", "N", "O", "OB", "OQ", "P", "PK"])];

/// Suffixes that Bloomberg writes after a space.
const BLOOMBERG: [(Exchange, &[&str]); 3] = [
    (Exchange::America, &["UA", "UF", "UN", "UP", "UQ", "UR", "UV", "UW"]),
    (Exchange::Shanghai, &["CG"]),
    (Exchange::Shenzhen, &["CS"]),
];

/// Prefix that Sina writes before an underscore and an American symbol.
const SINA: &str = "GB";

/// Prefixes of the codes of stocks and exchange-traded funds, by exchange. Bonds, indices,
/// preferred shares and other funds are omitted, because exchanges, data services and fund houses
/// use the same codes for them. Stocks of the third board, which begin with `40` and `42`, are not
/// listed in Beijing.
const SHANGHAI: [&str; 10] = ["60", "68", "900", "50", "51", "52", "53", "55", "56", "58"];
const SHENZHEN: [&str; 9] = ["000", "001", "002", "003", "30", "200", "201", "159", "16"];
const BEIJING: [&str; 5] = ["43", "83", "87", "88", "92"];

/// Prefixes among those of Beijing that are not stocks: indices of data services, and subscription
/// codes of new shares.
const NO_STOCKS: [&str; 2] = ["880", "889"];

/// Prefixes of bonds, preferred shares and indices that Beijing lists. They require the name of the
/// exchange.
const BEIJING_OTHERS: [&str; 3] = ["81", "82", "89"];

/// Prefixes of codes that neither Shanghai nor Shenzhen lists.
const NEITHER: [&str; 2] = ["4", "8"];

/// Exchange on which a security is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exchange {
    America,
    HongKong,
    /// One of the three mainland exchanges, which the code determines.
    Mainland,
    Shanghai,
    Shenzhen,
    Beijing,
}

impl Exchange {
    /// Returns the exchange with this name.
    pub(super) fn named(word: &str) -> Option<Self> {
        find(&NAMES, word)
    }

    /// Returns the exchange that a word before a code names. `sign` is the separator between them.
    /// An American name can also be a symbol with the suffix of another exchange, as in `BATS.L`,
    /// or the beginning of a company name, as in `US Steel`.
    pub(super) fn before(word: &str, sign: char) -> Option<Self> {
        if sign == '_' && word.eq_ignore_ascii_case(SINA) {
            return Some(Self::America);
        }
        let may_be_symbol = word.len() <= SYMBOL_LETTERS && !word.eq_ignore_ascii_case(AMERICA);
        let is_clear = sign == ':' || (sign != ' ' && !may_be_symbol);
        Self::named(word).filter(|exchange| is_clear || *exchange != Self::America)
    }

    /// Returns the exchanges that Eastmoney denotes by a number, as in `1.600519`.
    pub(super) fn numbered(number: &str) -> &'static [Self] {
        match number {
            "0" => &[Self::Shenzhen, Self::Beijing],
            "1" => &[Self::Shanghai],
            "105" | "106" | "107" => &[Self::America],
            "116" => &[Self::HongKong],
            _ => &[],
        }
    }

    /// Returns the exchange that a word after a code names. `sign` is the separator between them.
    pub(super) fn behind(sign: char, word: &str) -> Option<Self> {
        let of_service = match sign {
            '.' => find(&REUTERS, word),
            ' ' => find(&BLOOMBERG, word),
            _ => None,
        };
        of_service.or_else(|| Self::named(word))
    }

    /// Returns the ticker of a number, or `None` if the exchange does not list such a number.
    pub(super) fn ticker(self, code: &str) -> Option<String> {
        if self == Self::HongKong {
            return hong_kong(code);
        }
        if !is_mainland(code) {
            return None;
        }
        let exchange = match (self, by_code(code)) {
            (Self::Mainland, Some(sure)) => sure,
            (_, Some(sure)) if sure == self => sure,
            // The code does not determine an exchange, so the named one decides.
            (Self::Shanghai | Self::Shenzhen, None) if !begins(code, &NEITHER) => self,
            (Self::Beijing, None) if begins(code, &BEIJING_OTHERS) => self,
            _ => return None,
        };
        let suffix = match exchange {
            Self::Shanghai => "SS",
            Self::Shenzhen => "SZ",
            _ => "BJ",
        };
        Some(format!("{code}.{suffix}"))
    }
}

/// Returns true if a text consists of digits.
pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn find(table: &[(Exchange, &[&str])], word: &str) -> Option<Exchange> {
    let word = word.to_ascii_uppercase();
    let named = table.iter().find(|(_, names)| names.contains(&word.as_str()));
    named.map(|(exchange, _)| *exchange)
}

fn hong_kong(code: &str) -> Option<String> {
    let digits = code.trim_start_matches('0');
    let fits = is_number(code) && code.len() <= MOST_HONG_KONG_DIGITS && !digits.is_empty();
    fits.then(|| format!("{digits:0>HONG_KONG_DIGITS$}.HK"))
}

/// Returns the mainland exchange that a code determines.
fn by_code(code: &str) -> Option<Exchange> {
    if begins(code, &SHANGHAI) {
        Some(Exchange::Shanghai)
    } else if begins(code, &SHENZHEN) {
        Some(Exchange::Shenzhen)
    } else if begins(code, &BEIJING) && !begins(code, &NO_STOCKS) {
        Some(Exchange::Beijing)
    } else {
        None
    }
}

fn begins(code: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| code.starts_with(start))
}

/// Returns true if a text has the form of a mainland code.
pub(super) fn is_mainland(code: &str) -> bool {
    code.len() == MAINLAND_DIGITS && is_number(code)
}

#[cfg(test)]
mod tests {
    use super::Exchange;

    fn check(exchange: Exchange, code: &str, expected: Option<&str>) {
        assert_eq!(exchange.ticker(code).as_deref(), expected, "{exchange:?} {code}");
    }

    #[test]
    fn exchange_accepts_only_codes_that_it_lists() {
        check(Exchange::Shanghai, "600519", Some("600519.SS"));
        check(Exchange::Shanghai, "113050", Some("113050.SS"));
        check(Exchange::Shanghai, "000001", None);
        check(Exchange::Shanghai, "920748", None);
        check(Exchange::Shenzhen, "128136", Some("128136.SZ"));
        check(Exchange::Shenzhen, "600519", None);
        check(Exchange::Beijing, "920748", Some("920748.BJ"));
        check(Exchange::Beijing, "113050", None);
        check(Exchange::Mainland, "113050", None);
        check(Exchange::Mainland, "60051", None);
        check(Exchange::HongKong, "5", Some("0005.HK"));
        check(Exchange::HongKong, "80700", Some("80700.HK"));
        check(Exchange::HongKong, "000700", None);
        check(Exchange::HongKong, "0000", None);
        check(Exchange::HongKong, "AAPL", None);
        check(Exchange::America, "600519", None);
    }

    #[test]
    fn beijing_bonds_and_indices_require_the_exchange_name() {
        for code in ["430047", "830799", "870436", "881001", "920748"] {
            check(Exchange::Mainland, code, Some(&format!("{code}.BJ")));
            check(Exchange::Shanghai, code, None);
        }
        // An index, a preferred share and a bond.
        for code in ["899050", "820011", "810011"] {
            check(Exchange::Mainland, code, None);
            check(Exchange::Shanghai, code, None);
            check(Exchange::Shenzhen, code, None);
            check(Exchange::Beijing, code, Some(&format!("{code}.BJ")));
        }
        // An index of a data service, a subscription code, and stocks of the third board.
        for code in ["880001", "889001", "400001", "420001"] {
            check(Exchange::Mainland, code, None);
            check(Exchange::Shanghai, code, None);
            check(Exchange::Beijing, code, None);
        }
    }

    #[test]
    fn american_name_before_a_code_can_be_ambiguous() {
        for (word, sign, exchange) in [
            ("NASDAQ", ':', Some(Exchange::America)),
            ("nasdaq", '.', Some(Exchange::America)),
            ("BATS", ':', Some(Exchange::America)),
            ("US", '.', Some(Exchange::America)),
            ("BATS", '.', None),
            ("gb", '_', Some(Exchange::America)),
            ("GB", ' ', None),
            ("US", ' ', None),
            ("HK", ' ', Some(Exchange::HongKong)),
            ("LON", ':', None),
        ] {
            assert_eq!(Exchange::before(word, sign), exchange, "{word}{sign}");
        }
    }
}
