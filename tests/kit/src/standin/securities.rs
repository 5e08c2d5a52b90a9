//! The securities of the stand-ins: one table for the parsing of names, lookups and market data.
//!
//! Some of them are fictitious. No application has these in its own table, so a test that looks one
//! up reaches the services.

/// A listed security.
#[derive(Debug)]
pub(super) struct Security {
    pub(super) ticker: &'static str,
    pub(super) name: &'static str,
    pub(super) chinese: &'static str,
    /// Market identifier code of the primary exchange.
    pub(super) exchange: &'static str,
    pub(super) currency: &'static str,
    /// Other names.
    aliases: &'static [&'static str],
}

impl Security {
    /// Returns true if the market data of the United States contains the security.
    pub(super) fn is_us(&self) -> bool {
        self.currency == "usd"
    }

    /// Returns all names, without the ticker.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.name, self.chinese].into_iter().chain(self.aliases.iter().copied())
    }
}

/// Returns the length of the longest known name at `start` of a lower-case text, in characters.
pub(super) fn name_at(lower: &[char], start: usize) -> Option<usize> {
    SECURITIES
        .iter()
        .flat_map(Security::names)
        .filter_map(|name| match_at(lower, start, name))
        .max()
}

/// Returns the length of `name` if it is at `start`. Latin names must end at a word boundary.
fn match_at(lower: &[char], start: usize, name: &str) -> Option<usize> {
    let mut at = start;
    for expected in name.chars() {
        if lower.get(at).is_none_or(|c| *c != expected.to_ascii_lowercase()) {
            return None;
        }
        at += 1;
    }
    let inside_word = name.is_ascii() && lower.get(at).is_some_and(char::is_ascii_alphanumeric);
    (!inside_word && at > start).then_some(at - start)
}

const fn us(
    ticker: &'static str,
    name: &'static str,
    chinese: &'static str,
    exchange: &'static str,
    aliases: &'static [&'static str],
) -> Security {
    Security { ticker, name, chinese, exchange, currency: "usd", aliases }
}

const fn hong_kong(
    ticker: &'static str,
    name: &'static str,
    chinese: &'static str,
    aliases: &'static [&'static str],
) -> Security {
    Security { ticker, name, chinese, exchange: "XHKG", currency: "hkd", aliases }
}

const fn china(
    ticker: &'static str,
    name: &'static str,
    chinese: &'static str,
    exchange: &'static str,
    aliases: &'static [&'static str],
) -> Security {
    Security { ticker, name, chinese, exchange, currency: "cny", aliases }
}

// One row per line.
#[rustfmt::skip]
pub(super) const SECURITIES: &[Security] = &[
    us("AAPL", "Apple Inc.", "苹果公司", "XNAS", &["苹果", "Apple"]),
    us("MSFT", "Microsoft Corp", "微软", "XNAS", &["Microsoft"]),
    us("NVDA", "Nvidia Corp", "英伟达", "XNAS", &["Nvidia"]),
    us("GOOGL", "Alphabet Inc. Class A Common Stock", "谷歌", "XNAS", &["Alphabet", "Google"]),
    us("GOOG", "Alphabet Inc. Class C Capital Stock", "谷歌-C", "XNAS", &[]),
    us("AMZN", "Amazon.Com Inc", "亚马逊", "XNAS", &["Amazon"]),
    us("META", "Meta Platforms, Inc. Class A Common Stock", "Meta", "XNAS", &["脸书", "Facebook"]),
    us("TSLA", "Tesla, Inc. Common Stock", "特斯拉", "XNAS", &["Tesla"]),
    us("AMD", "Advanced Micro Devices", "超威半导体", "XNAS", &["超微半导体"]),
    us("INTC", "Intel Corp", "英特尔", "XNAS", &["Intel"]),
    us("NFLX", "NetFlix Inc", "奈飞", "XNAS", &["Netflix", "网飞"]),
    us("AVGO", "Broadcom Inc. Common Stock", "博通", "XNAS", &["Broadcom"]),
    us("COST", "Costco Wholesale Corp", "好市多", "XNAS", &["Costco", "开市客"]),
    us("PEP", "PepsiCo, Inc.", "百事", "XNAS", &["Pepsi", "百事可乐"]),
    us("ADBE", "Adobe Inc.", "奥多比", "XNAS", &["Adobe"]),
    us("CSCO", "Cisco Systems, Inc. Common Stock (DE)", "思科", "XNAS", &["Cisco"]),
    us("QCOM", "Qualcomm Inc", "高通", "XNAS", &["Qualcomm"]),
    us("SBUX", "Starbucks Corp", "星巴克", "XNAS", &["Starbucks"]),
    us("PYPL", "PayPal Holdings, Inc. Common Stock", "贝宝", "XNAS", &["PayPal"]),
    us("PLTR", "Palantir Technologies Inc. Class A Common Stock", "帕兰提尔", "XNAS", &["Palantir"]),
    us("COIN", "Coinbase Global, Inc. Class A Common Stock", "Coinbase", "XNAS", &[]),
    us("MSTR", "Strategy Inc Class A Common Stock", "微策略", "XNAS", &["MicroStrategy"]),
    us("PDD", "PDD Holdings Inc. American Depositary Shares", "拼多多", "XNAS", &["Pinduoduo"]),
    us("JD", "JD.com, Inc. American Depositary Shares", "京东", "XNAS", &[]),
    us("BIDU", "Baidu, Inc. American Depositary Shares", "百度", "XNAS", &["Baidu"]),
    us("NTES", "NetEase, Inc. American Depositary Shares", "网易", "XNAS", &["NetEase"]),
    us("LI", "Li Auto Inc. American Depositary Shares", "理想汽车", "XNAS", &["Li Auto"]),
    us("BABA", "Alibaba Group Holding Limited", "阿里巴巴", "XNYS", &["Alibaba", "阿里"]),
    us("NIO", "NIO Inc.", "蔚来", "XNYS", &["蔚来汽车"]),
    us("XPEV", "XPeng Inc.", "小鹏汽车", "XNYS", &["XPeng", "小鹏"]),
    us("TSM", "Taiwan Semiconductor Manufacturing Company Ltd.", "台积电", "XNYS", &["TSMC"]),
    us("BRK.B", "Berkshire Hathaway Inc. Class B", "伯克希尔", "XNYS", &["Berkshire Hathaway"]),
    us("JPM", "JPMorgan Chase & Co.", "摩根大通", "XNYS", &["JPMorgan"]),
    us("BAC", "Bank of America Corporation", "美国银行", "XNYS", &["Bank of America"]),
    us("V", "Visa Inc. Class A Common Stock", "维萨", "XNYS", &["Visa"]),
    us("MA", "Mastercard Incorporated", "万事达", "XNYS", &["Mastercard"]),
    us("KO", "Coca-Cola Company (The)", "可口可乐", "XNYS", &["Coca-Cola"]),
    us("DIS", "The Walt Disney Company", "迪士尼", "XNYS", &["Disney"]),
    us("NKE", "Nike, Inc.", "耐克", "XNYS", &["Nike"]),
    us("MCD", "McDonald's Corporation", "麦当劳", "XNYS", &["McDonald's"]),
    us("WMT", "Walmart Inc. Common Stock", "沃尔玛", "XNYS", &["Walmart"]),
    us("BA", "Boeing Company", "波音", "XNYS", &["Boeing"]),
    us("IBM", "International Business Machines Corporation", "国际商业机器", "XNYS", &[]),
    us("UBER", "Uber Technologies, Inc.", "优步", "XNYS", &["Uber"]),
    us("QXZR", "Quillmere Robotics Inc. Class A Common Stock", "奎米尔机器人", "XNAS", &["Quillmere"]),
    us("SPY", "SPDR S&P 500 ETF Trust", "标普500ETF", "ARCX", &[]),
    us("QQQ", "Invesco QQQ Trust, Series 1", "纳指100ETF", "XNAS", &[]),
    hong_kong("0700.HK", "Tencent Holdings Limited", "腾讯控股", &["腾讯", "Tencent"]),
    hong_kong("1810.HK", "Xiaomi Corporation", "小米集团-W", &["小米集团", "小米", "Xiaomi"]),
    hong_kong("3690.HK", "Meituan", "美团-W", &["美团"]),
    hong_kong("1211.HK", "BYD Company Limited", "比亚迪股份", &["BYD"]),
    hong_kong("0005.HK", "HSBC Holdings plc", "汇丰控股", &["汇丰", "HSBC"]),
    hong_kong("0001.HK", "CK Hutchison Holdings Limited", "长和", &["和记黄埔"]),
    hong_kong("0388.HK", "Hong Kong Exchanges and Clearing Limited", "香港交易所", &["港交所"]),
    hong_kong("8999.HK", "Heron Bay Technology Holdings Limited", "栖岸科技", &[]),
    china("309999.SZ", "Lanshan Tidal Energy Co., Ltd.", "澜山潮能", "XSHE", &[]),
    china("600519.SS", "Kweichow Moutai Co., Ltd.", "贵州茅台", "XSHG", &["茅台", "Moutai"]),
    china("601318.SS", "Ping An Insurance (Group) Company of China, Ltd.", "中国平安", "XSHG", &["平安"]),
    china("600036.SS", "China Merchants Bank Co., Ltd.", "招商银行", "XSHG", &["招行"]),
    china("600031.SS", "Sany Heavy Industry Co., Ltd.", "三一重工", "XSHG", &[]),
    china("300750.SZ", "Contemporary Amperex Technology Co., Limited", "宁德时代", "XSHE", &["CATL"]),
    china("000858.SZ", "Wuliangye Yibin Co., Ltd.", "五粮液", "XSHE", &["Wuliangye"]),
    china("000002.SZ", "China Vanke Co., Ltd.", "万科A", "XSHE", &["万科"]),
    china("000333.SZ", "Midea Group Co., Ltd.", "美的集团", "XSHE", &["美的"]),
    china("002594.SZ", "BYD Company Limited", "比亚迪", "XSHE", &[]),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{SECURITIES, name_at};

    #[test]
    fn tickers_are_unique() {
        let tickers: BTreeSet<&str> = SECURITIES.iter().map(|security| security.ticker).collect();
        assert_eq!(tickers.len(), SECURITIES.len());
        assert!(SECURITIES.iter().filter(|security| security.is_us()).count() >= 40);
    }

    #[test]
    fn the_longest_name_matches_at_word_boundaries() {
        let length = |text: &str| name_at(&text.chars().collect::<Vec<_>>(), 0);
        assert_eq!(length("腾讯控股"), Some(4));
        assert_eq!(length("腾讯音乐"), Some(2));
        assert_eq!(length("apple at 10"), Some(5));
        assert_eq!(length("apples"), None);
        assert_eq!(length("泡泡玛特"), None);
    }
}
