//! Search in the app's table of well-known listings, which needs no host call.

use std::collections::{BTreeSet, HashMap};

use crate::listings::{self, TICKERS};
use crate::lookup::name;
use crate::lookup::security::Security;
use crate::ticker::{self, Given};

/// Minimum letters of an English query that can be the beginning of a longer name.
const PREFIX_LETTERS: usize = 5;

/// Minimum characters of a Chinese query that can be a part of a longer name.
const PART_CHARS: usize = 3;

/// One line of the table.
struct Line {
    ticker: &'static str,
    chinese: &'static str,
    english: &'static str,
    aliases: &'static str,
}

impl Line {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        let aliases = self.aliases.split('/').filter(|alias| !alias.is_empty());
        [self.chinese, self.english].into_iter().chain(aliases)
    }

    /// Returns the names of the company without the letters that distinguish its listings.
    fn companies(&self) -> BTreeSet<String> {
        self.names().map(name::company).collect()
    }

    fn security(&self) -> Security {
        Security { ticker: self.ticker.to_owned(), name: self.chinese.to_owned(), currency: None }
    }
}

/// The table with indexes of its names. Values are line numbers.
pub(super) struct Table {
    lines: Vec<Line>,
    by_whole: HashMap<String, usize>,
    /// `None` for a stem that several listings share.
    by_stem: HashMap<String, Option<usize>>,
}

impl Table {
    pub(super) fn read() -> Self {
        let lines = TICKERS.lines().filter_map(line).collect();
        let mut table = Self { lines, by_whole: HashMap::new(), by_stem: HashMap::new() };
        for (at, line) in table.lines.iter().enumerate() {
            for text in line.names() {
                table.by_whole.entry(name::whole(text)).or_insert(at);
                let owner = table.by_stem.entry(name::stem(text)).or_insert(Some(at));
                *owner = owner.filter(|owner| *owner == at);
            }
        }
        table
    }

    /// Returns the security that a ticker or a name means, or `None` if it is unknown or ambiguous.
    pub(super) fn find(&self, query: &str) -> Option<Security> {
        let at = by_ticker(query).or_else(|| self.by_name(query));
        at.or_else(|| self.by_part(query)).map(|at| self.lines[at].security())
    }

    /// Classifies a text that was given as a ticker. A lower-case word is not certainly a ticker if
    /// the table has it only as a name.
    pub(super) fn given(&self, text: &str) -> Given {
        match ticker::given(text) {
            Given::Whole(ticker) if self.is_name(text, &ticker) => {
                Given::Unsure(text.trim().to_owned())
            }
            given => given,
        }
    }

    fn is_name(&self, text: &str, ticker: &str) -> bool {
        let is_small = text.trim() == ticker.to_ascii_lowercase();
        is_small && !listings::has(ticker) && self.by_name(ticker).is_some()
    }

    /// Returns the security with exactly this ticker.
    pub(super) fn listed(&self, ticker: &str) -> Option<Security> {
        listings::place(ticker).map(|at| self.lines[at].security())
    }

    /// Returns true if a name does not contradict a ticker: both mean the same company, in any of
    /// its listings, or the table does not have both.
    pub(super) fn agree(&self, ticker: &str, name: &str) -> bool {
        let named = self.by_name(name).map(|at| self.lines[at].companies());
        match (listings::place(ticker), named) {
            (Some(at), Some(named)) => !self.lines[at].companies().is_disjoint(&named),
            _ => true,
        }
    }

    /// Returns true if the table has the ticker, and the name is a name of the ticker's company.
    pub(super) fn has_company(&self, ticker: &str, name: &str) -> bool {
        let is_known = listings::has(ticker) && self.by_name(name).is_some();
        is_known && self.agree(ticker, name)
    }

    fn by_name(&self, query: &str) -> Option<usize> {
        let (whole, stem) = (name::whole(query), name::stem(query));
        let exact = self.by_whole.get(&whole).or_else(|| self.by_whole.get(&stem)).copied();
        let cut = || self.by_stem.get(&whole).or_else(|| self.by_stem.get(&stem)).copied();
        exact.or_else(|| cut().flatten())
    }

    /// Finds the only company whose English name begins with these words, or whose Chinese name
    /// contains these characters.
    fn by_part(&self, query: &str) -> Option<usize> {
        let words = name::words(query);
        let whole = words.concat();
        let is_part = |line: &Line| {
            if whole.is_ascii() {
                whole.len() >= PREFIX_LETTERS && name::words(line.english).starts_with(&words)
            } else {
                whole.chars().count() >= PART_CHARS && name::whole(line.chinese).contains(&whole)
            }
        };
        let hits = self.lines.iter().enumerate().filter(|(_, line)| is_part(line));
        self.one_company(&hits.map(|(at, _)| at).collect::<Vec<_>>())
    }

    /// Returns the main listing if all lines are listings of one company. It has the shortest name,
    /// because the names of other listings have a suffix of letters.
    fn one_company(&self, hits: &[usize]) -> Option<usize> {
        let main = hits.iter().copied().min_by_key(|at| self.lines[*at].chinese.len())?;
        let companies = self.lines[main].companies();
        let is_same = |at: &usize| !self.lines[*at].companies().is_disjoint(&companies);
        hits.iter().all(is_same).then_some(main)
    }
}

fn by_ticker(query: &str) -> Option<usize> {
    listings::place(&ticker::normalize(query))
}

fn line(text: &'static str) -> Option<Line> {
    let mut fields = text.split(',');
    let (ticker, chinese) = (fields.next()?, fields.next()?);
    let (english, aliases) = (fields.next()?, fields.next()?);
    Some(Line { ticker, chinese, english, aliases })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::{TICKERS, Table};
    use crate::lookup::name;
    use crate::ticker::{self, Given};

    fn check(query: &str, expected: Option<&str>) {
        let found = Table::read().find(query).map(|security| security.ticker);
        assert_eq!(found.as_deref(), expected, "{query}");
    }

    #[test]
    fn table_is_well_formed() {
        let table = Table::read();
        assert_eq!(table.lines.len(), TICKERS.lines().count(), "every line has four fields");
        assert!(table.lines.len() >= 1_700);
        let tickers: BTreeSet<_> = table.lines.iter().map(|line| line.ticker).collect();
        assert_eq!(tickers.len(), table.lines.len(), "tickers are unique");
        for line in &table.lines {
            assert_eq!(ticker::normalize(line.ticker), line.ticker);
            let (code, suffix) = line.ticker.split_once('.').unwrap_or((line.ticker, ""));
            let digits = code.bytes().filter(u8::is_ascii_digit).count();
            let is_well_formed = match suffix {
                "HK" => digits == 4 && code.len() == 4,
                "SS" => digits == 6 && matches!(code.as_bytes()[0], b'5' | b'6'),
                "SZ" => digits == 6 && matches!(code.as_bytes()[0], b'0' | b'1' | b'3'),
                _ => digits == 0 && (1..=5).contains(&code.len()),
            };
            assert!(is_well_formed, "{}", line.ticker);
            assert!(!line.chinese.is_empty() && line.english.is_ascii(), "{}", line.ticker);
        }
    }

    #[test]
    fn names_are_unique() {
        let mut owners: BTreeMap<String, &str> = BTreeMap::new();
        for line in &Table::read().lines {
            for text in line.names() {
                let owner = owners.entry(name::whole(text)).or_insert(line.ticker);
                assert_eq!(*owner, line.ticker, "{text}");
            }
        }
    }

    #[test]
    fn tickers_and_names_are_found() {
        for query in
            ["腾讯", "腾讯控股", "腾讯控股有限公司", "Tencent", "TENCENT HOLDINGS", "700.hk"]
        {
            check(query, Some("0700.HK"));
        }
        check("ａａｐｌ", Some("AAPL"));
        check("aapl", Some("AAPL"));
        check("Ａｐｐｌｅ", Some("AAPL"));
        check("Apple Inc.", Some("AAPL"));
        check("JD.com", Some("JD"));
        check("Amazon.com", Some("AMZN"));
        check("贵州茅台", Some("600519.SS"));
        check("600519", Some("600519.SS"));
        check("比亚迪", Some("002594.SZ"));
        check("比亚迪股份", Some("1211.HK"));
        check("美团", Some("3690.HK"));
        check("京东", Some("JD"));
        check("京东集团-SW", Some("9618.HK"));
        check("平安好医生", Some("1833.HK"));
        check("平安", Some("601318.SS"));
    }

    #[test]
    fn unambiguous_parts_of_names_are_found() {
        check("Goldman", Some("GS"));
        check("Taiwan Semiconductor", Some("TSM"));
        check("海尔智", Some("600690.SS"));
        check("China", None);
        check("Gold", None);
        check("银行", None);
        check("中国", None);
    }

    #[test]
    fn well_known_names_are_found() {
        for (query, ticker) in [
            ("小米", "1810.HK"),
            ("宁德时代", "300750.SZ"),
            ("泡泡玛特", "9992.HK"),
            ("Palantir", "PLTR"),
            ("Coinbase", "COIN"),
            ("MicroStrategy", "MSTR"),
            ("波音", "BA"),
            ("三一重工", "600031.SS"),
            ("中芯国际", "0981.HK"),
            ("工商银行", "601398.SS"),
            ("理想汽车", "LI"),
        ] {
            check(query, Some(ticker));
        }
        check("", None);
    }

    #[test]
    fn lower_case_words_can_be_names() {
        let table = Table::read();
        let unsure = |text: &str| Given::Unsure(text.to_owned());
        let whole = |text: &str| Given::Whole(text.to_owned());
        assert_eq!(table.given("apple"), unsure("apple"));
        assert_eq!(table.given(" byd "), unsure("byd"));
        assert_eq!(table.given("aapl"), whole("AAPL"));
        assert_eq!(table.given("qxzr"), whole("QXZR"));
        assert_eq!(table.given("BYD"), whole("BYD"), "a ticker of the United States");
        assert_eq!(table.given("NYSE:BYD"), whole("BYD"));
    }

    #[test]
    fn name_agrees_with_every_listing_of_its_company() {
        let table = Table::read();
        for (ticker, name, agrees) in [
            ("9988.HK", "阿里巴巴", true),
            ("BABA", "阿里巴巴-W", true),
            ("0939.HK", "建设银行", true),
            ("1211.HK", "比亚迪", true),
            ("0700.HK", "Tencent", true),
            ("0700.HK", "贵州茅台", false),
            ("AAPL", "微软", false),
            ("AAPL", "没有听说过", true),
            ("ZZZZ", "苹果", true),
        ] {
            assert_eq!(table.agree(ticker, name), agrees, "{ticker} {name}");
        }
        assert!(table.has_company("9988.HK", "阿里巴巴"));
        assert!(!table.has_company("AAPL", "没有听说过"));
        assert!(!table.has_company("ZZZZ", "苹果"));
    }
}
