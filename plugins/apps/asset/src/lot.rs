//! Sizes of board lots ("手").

/// Shares in a lot of stocks and funds of Shanghai and Shenzhen.
const MAINLAND: u32 = 100;

/// Prefixes of the codes of stocks and exchange-traded funds that trade in lots of 100 shares, by
/// exchange. Bonds have lots of ten. The STAR market (688, 689) and Beijing trade single shares.
const SHANGHAI: [&str; 8] = ["600", "601", "603", "605", "50", "51", "56", "58"];
const SHENZHEN: [&str; 4] = ["00", "30", "15", "16"];

/// Returns the lot size if the exchange sets one for all securities of a kind. In Hong Kong each
/// issuer sets its own, and American exchanges trade single shares.
pub(crate) fn size(ticker: &str) -> Option<u32> {
    let (code, exchange) = ticker.split_once('.')?;
    let begins = |codes: &[&str]| codes.iter().any(|start| code.starts_with(start));
    let is_regular = match exchange {
        "SS" => begins(&SHANGHAI),
        "SZ" => begins(&SHENZHEN),
        _ => false,
    };
    is_regular.then_some(MAINLAND)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn only_mainland_stocks_and_funds_have_a_common_lot_size() {
        for ticker in ["600519.SS", "601318.SS", "510300.SS", "588000.SS", "000001.SZ", "300750.SZ"]
        {
            assert_eq!(size(ticker), Some(100), "{ticker}");
        }
        for ticker in ["0700.HK", "AAPL", "UNKNOWN", "", "688981.SS", "113050.SS", "128136.SZ"] {
            assert_eq!(size(ticker), None, "{ticker}");
        }
    }
}
