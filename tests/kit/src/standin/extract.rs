//! Extracts operations and holdings from a text, as JSON rows of a response schema.

use jiff::civil::Date;
use serde_json::{Map, Value, json};

use super::reader::{self, Item, Kind};

/// Returns the rows of all trades in `text`. They have no currency, because the ticker determines
/// it.
pub(super) fn operations(text: &str, today: Option<Date>) -> Vec<Map<String, Value>> {
    let items = reader::read(text, today);
    let trades = pick(items, |item| item.kind != Some(Kind::Hold));
    trades.iter().map(operation).collect()
}

/// Returns the rows of all holdings in `text`.
pub(super) fn holdings(text: &str, today: Option<Date>) -> Vec<Map<String, Value>> {
    let items = reader::read(text, today);
    let held = pick(items, |item| matches!(item.kind, None | Some(Kind::Hold)));
    held.iter().map(holding).collect()
}

/// Returns the matching items, or all items if none matches, because the text may use other words.
fn pick(items: Vec<Item>, fits: impl Fn(&Item) -> bool) -> Vec<Item> {
    if items.iter().any(&fits) { items.into_iter().filter(fits).collect() } else { items }
}

fn operation(item: &Item) -> Map<String, Value> {
    let action = if item.kind == Some(Kind::Sell) { "sell" } else { "buy" };
    let mut row = subject(item);
    row.insert("action".to_owned(), json!(action));
    put_quantity(&mut row, item);
    put_number(&mut row, "price", item.price);
    if let Some(date) = item.date {
        row.insert("tradedAt".to_owned(), json!(date.to_string()));
    }
    row
}

fn holding(item: &Item) -> Map<String, Value> {
    let mut row = subject(item);
    put_quantity(&mut row, item);
    put_number(&mut row, "costPrice", item.price);
    row
}

fn subject(item: &Item) -> Map<String, Value> {
    let mut row = Map::new();
    for (key, value) in [("ticker", &item.code), ("name", &item.name)] {
        if let Some(value) = value {
            row.insert(key.to_owned(), json!(value));
        }
    }
    row
}

/// Inserts the quantity as it is written, and its unit.
fn put_quantity(row: &mut Map<String, Value>, item: &Item) {
    put_number(row, "quantity", item.quantity);
    if item.quantity.is_some() {
        let unit = if item.in_lots { "lot" } else { "share" };
        row.insert("quantityUnit".to_owned(), json!(unit));
    }
}

/// Inserts a number. Integers have no fraction, as in the output of a real model.
fn put_number(row: &mut Map<String, Value>, key: &str, value: Option<f64>) {
    let Some(value) = value else { return };
    let number =
        if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) };
    row.insert(key.to_owned(), number);
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::{Map, Value};

    use super::{holdings, operations};

    /// Formats rows in short form: the values in the order of the keys, `-` for missing ones.
    fn short(rows: &[Map<String, Value>], keys: &[&str]) -> Vec<String> {
        let value = |row: &Map<String, Value>, key: &str| match row.get(key) {
            None => "-".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        rows.iter()
            .map(|row| keys.iter().map(|key| value(row, key)).collect::<Vec<_>>().join(" "))
            .collect()
    }

    const TODAY: jiff::civil::Date = date(2025, 1, 15);

    fn check(text: &str, expected: &[&str]) {
        let rows = operations(text, Some(TODAY));
        assert!(rows.iter().all(|row| !row.contains_key("currency")));
        let keys = ["action", "name", "ticker", "quantity", "price", "tradedAt"];
        assert_eq!(short(&rows, &keys), expected, "{text}");
    }

    fn check_holdings(text: &str, expected: &[&str]) {
        let rows = holdings(text, Some(TODAY));
        assert_eq!(short(&rows, &["name", "ticker", "quantity", "costPrice"]), expected, "{text}");
    }

    #[test]
    fn one_chinese_trade_is_extracted() {
        check("昨天买入腾讯 100 股 320", &["buy 腾讯 - 100 320 2025-01-14"]);
        check("昨天买入腾讯 100 股，每股 320 元。", &["buy 腾讯 - 100 320 2025-01-14"]);
        check("买了泡泡玛特两百股，价格 180.5", &["buy 泡泡玛特 - 200 180.5 -"]);
        check("卖出贵州茅台 5 手 @1,680.50", &["sell 贵州茅台 - 5 1680.5 -"]);
        check("2025-01-10卖了 0700.HK 300股 单价321", &["sell - 0700.HK 300 321 2025-01-10"]);
        check(
            "1月10日以320的价格买入腾讯控股(0700.HK)100股",
            &["buy 腾讯控股 0700.HK 100 320 2025-01-10"],
        );
        check(
            "我前天在富途上用 320 元买入了腾讯 100 股，共 32000 元",
            &["buy 腾讯 - 100 320 2025-01-13"],
        );
        check("腾讯100股320元买入", &["buy 腾讯 - 100 320 -"]);
        check("320买入腾讯100股", &["buy 腾讯 - 100 320 -"]);
        check("买入三一重工一千股，均价十八", &["buy 三一重工 - 1000 18 -"]);
        check("今天买入600519 100股 1700", &["buy - 600519 100 1700 2025-01-15"]);
        check("买入苹果100股", &["buy 苹果 - 100 - -"]);
        check("买入泡泡玛特，价格 200", &["buy 泡泡玛特 - - 200 -"]);
        check(
            "昨天10:30买入美的集团1.5万股，成交价 HK$55",
            &["buy 美的集团 - 15000 55 2025-01-14"],
        );
        check("买入 １００ 股腾讯，价格：３２０", &["buy 腾讯 - 100 320 -"]);
        check("今天天气很好。买入泡泡玛特100股，200元", &["buy 泡泡玛特 - 100 200 -"]);
    }

    #[test]
    fn quantities_keep_their_unit() {
        for (text, unit) in [
            ("买入腾讯 5 手 320", "lot"),
            ("买入腾讯 5 股 320", "share"),
            ("buy TSLA 5 210", "share"),
        ] {
            assert_eq!(operations(text, Some(TODAY))[0]["quantityUnit"], unit, "{text}");
        }
        assert_eq!(holdings("持有腾讯 2 手，成本 320", None)[0]["quantityUnit"], "lot");
        assert!(!operations("买入泡泡玛特，价格 200", None)[0].contains_key("quantityUnit"));
    }

    #[test]
    fn one_english_trade_is_extracted() {
        check(
            "bought 100 shares of Apple at 189.5 yesterday",
            &["buy Apple - 100 189.5 2025-01-14"],
        );
        check("Sold 10 AAPL @ $189.50", &["sell - AAPL 10 189.5 -"]);
        check(
            "I bought 1,000 shares of Pop Mart for $25 per share on Jan 10, 2025",
            &["buy Pop Mart - 1000 25 2025-01-10"],
        );
        check("buy TSLA 5 210", &["buy - TSLA 5 210 -"]);
        check("SELL BRK.B 2k shares, price: USD 410", &["sell - BRK.B 2000 410 -"]);
        check(
            "Bought Berkshire Hathaway 3 shares at 400 dollars, total 1200",
            &["buy Berkshire Hathaway - 3 400 -"],
        );
    }

    #[test]
    fn several_trades_are_extracted() {
        check(
            "昨天买入腾讯100股320，卖出苹果50股190",
            &["buy 腾讯 - 100 320 2025-01-14", "sell 苹果 - 50 190 2025-01-14"],
        );
        check(
            "买入腾讯100股320，今天卖出苹果50股190",
            &["buy 腾讯 - 100 320 -", "sell 苹果 - 50 190 2025-01-15"],
        );
        check(
            "买了100股腾讯 320元，200股苹果 180元；卖了茅台10股，1500",
            &["buy 腾讯 - 100 320 -", "buy 苹果 - 200 180 -", "sell 茅台 - 10 1500 -"],
        );
        check(
            "2025-01-10 买入:\n腾讯 100 320\n苹果 50 180\n泡泡玛特 30 200.5",
            &[
                "buy 腾讯 - 100 320 2025-01-10",
                "buy 苹果 - 50 180 2025-01-10",
                "buy 泡泡玛特 - 30 200.5 2025-01-10",
            ],
        );
        check(
            "1月10日买入腾讯100股320，1月12日卖出50股 330",
            &["buy 腾讯 - 100 320 2025-01-10", "sell 腾讯 - 50 330 2025-01-12"],
        );
        check("买入腾讯和苹果各100股", &["buy 腾讯 - 100 - -", "buy 苹果 - 100 - -"]);
        check(
            "bought 10 AAPL at 189.5 and sold 5 TSLA at 210",
            &["buy - AAPL 10 189.5 -", "sell - TSLA 5 210 -"],
        );
        check(
            "320元买入腾讯100股，180元买入苹果50股",
            &["buy 腾讯 - 100 320 -", "buy 苹果 - 50 180 -"],
        );
        check(
            "股票代码 名称 操作 数量 价格\n0700.HK 腾讯控股 买入 100 320\nAAPL 苹果 卖出 10 189",
            &["buy 腾讯控股 0700.HK 100 320 -", "sell 苹果 AAPL 10 189 -"],
        );
    }

    #[test]
    fn other_texts_have_no_trades() {
        for text in ["", "今天天气很好", "hello world", "买入", "100 股", "明天开会"] {
            check(text, &[]);
        }
    }

    #[test]
    fn odd_texts_do_not_panic() {
        let parts = [
            "买入", "腾讯", "100", "股", "，", "。", "各", "和", "昨天", "1月", "@", "$", "HK",
            "AAPL", "0700.HK", "三", "万", "10:3", "Jan", "sold", "-", ".", " ", "%", "共", "成本",
            "\u{fe0f}", "é",
        ];
        for first in parts {
            for second in parts {
                let text = format!("{first}{second}{first} {second}");
                operations(&text, Some(TODAY));
                holdings(&text, None);
            }
        }
    }

    #[test]
    fn holdings_in_all_forms_are_extracted() {
        check_holdings("我持有贵州茅台 10 股，成本 1500", &["贵州茅台 - 10 1500"]);
        check_holdings(
            "目前持仓：腾讯 200股 成本价300.5；苹果 50股 均价 180 美元",
            &["腾讯 - 200 300.5", "苹果 - 50 180"],
        );
        check_holdings("I hold 50 Tesla shares, cost 210", &["Tesla - 50 210"]);
        check_holdings(
            "holding 20 NVDA at an average cost of $110 and 5 MSFT at 400",
            &["- NVDA 20 110", "- MSFT 5 400"],
        );
        check_holdings(
            "持有0700.HK 100股，成本价320，现价 350，盈亏 +9.4%",
            &["- 0700.HK 100 320"],
        );
        check_holdings("持仓数量 100 腾讯 持仓成本 320 市值 35000", &["腾讯 - 100 320"]);
        check_holdings("持有腾讯100股成本320，昨天买入苹果50股180", &["腾讯 - 100 320"]);
    }
}
