//! The book: the bookings of a month, with sums by day and by category.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wattle_plugin::prelude::JsonSchema;

use crate::calendar::Calendar;

/// Kind of a booking: an expense or income.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Consume,
    Income,
}

/// A row of the table, as the tool returns it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Row {
    id: String,
    remark: String,
    category: String,
    amount: Option<f64>,
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(rename = "date")]
    date_ms: i64,
}

/// A booking.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Booking {
    id: String,
    /// Date such as `2025-01-14`.
    date: String,
    date_ms: i64,
    remark: String,
    category: String,
    /// Amount in yuan, or `None` if the cell is empty.
    amount: Option<f64>,
    kind: Kind,
}

/// Sums of a day in yuan.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Day {
    date: String,
    consume: f64,
    income: f64,
    count: usize,
}

/// Sum of a category in yuan.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Category {
    category: String,
    kind: Kind,
    amount: f64,
    count: usize,
}

/// Sums of a month in yuan.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Sums {
    consume: f64,
    income: f64,
    count: usize,
    /// Largest amount first.
    categories: Vec<Category>,
}

/// A month with its bookings.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Book {
    /// Days with bookings, in order.
    days: Vec<Day>,
    sums: Sums,
    /// In the order of the rows.
    bookings: Vec<Booking>,
}

/// Sum in hundredths of a yuan, which is exact, with the number of its amounts. A cell of the table
/// can have any number, so a sum that is too large becomes the largest one.
#[derive(Clone, Copy, Default)]
struct Sum {
    fen: i128,
    count: usize,
}

impl Sum {
    fn add(&mut self, amount: Option<f64>) {
        let fen = (amount.unwrap_or_default() * 100.0).round() as i128;
        self.fen = self.fen.saturating_add(fen);
        self.count += 1;
    }

    fn yuan(self) -> f64 {
        self.fen as f64 / 100.0
    }
}

impl Book {
    /// Sums up the rows of a month. Rows outside of the month are ignored.
    pub(crate) fn new(calendar: &Calendar, rows: Vec<Row>) -> Self {
        let mut kinds: BTreeMap<Kind, Sum> = BTreeMap::new();
        let mut days: BTreeMap<(String, Kind), Sum> = BTreeMap::new();
        let mut categories: BTreeMap<(Kind, String), Sum> = BTreeMap::new();
        let mut bookings = Vec::new();
        for row in rows {
            let Some(date) = calendar.date(row.date_ms) else { continue };
            let Row { id, remark, category, amount, kind, date_ms } = row;
            kinds.entry(kind).or_default().add(amount);
            days.entry((date.clone(), kind)).or_default().add(amount);
            categories.entry((kind, category.clone())).or_default().add(amount);
            bookings.push(Booking { id, date, date_ms, remark, category, amount, kind });
        }
        let sum = |kind| kinds.get(&kind).copied().unwrap_or_default();
        let sums = Sums {
            consume: sum(Kind::Consume).yuan(),
            income: sum(Kind::Income).yuan(),
            count: bookings.len(),
            categories: by_category(categories),
        };
        Self { days: by_day(&days), sums, bookings }
    }
}

fn by_day(sums: &BTreeMap<(String, Kind), Sum>) -> Vec<Day> {
    let mut dates: Vec<&String> = sums.keys().map(|(date, _)| date).collect();
    dates.dedup();
    let sum = |date: &String, kind| sums.get(&(date.clone(), kind)).copied().unwrap_or_default();
    let day = |date: &String| {
        let (consume, income) = (sum(date, Kind::Consume), sum(date, Kind::Income));
        let count = consume.count + income.count;
        Day { date: date.clone(), consume: consume.yuan(), income: income.yuan(), count }
    };
    dates.into_iter().map(day).collect()
}

fn by_category(sums: BTreeMap<(Kind, String), Sum>) -> Vec<Category> {
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.fen));
    let category = |((kind, category), sum): ((Kind, String), Sum)| Category {
        category,
        kind,
        amount: sum.yuan(),
        count: sum.count,
    };
    sums.into_iter().map(category).collect()
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;
    use wattle_plugin::testing::FakeHost;

    use super::{Book, Row};
    use crate::calendar::Calendar;

    /// 2025-01-15 10:30:45.123 in Shanghai.
    const NOW_MS: i64 = 1_736_908_245_123;

    fn january() -> Calendar {
        let host = FakeHost::new().now_ms(NOW_MS).zone("Asia/Shanghai", 28_800);
        host.run(|| Calendar::new(None)).unwrap()
    }

    fn row(id: &str, category: &str, amount: Option<f64>, kind: &str, date_ms: i64) -> Row {
        let row = json!({"id": id, "remark": "x", "category": category, "amount": amount,
            "type": kind, "date": date_ms});
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn sums_of_large_amounts_do_not_overflow() {
        for (amount, sum) in [(1e17, 2e17), (1e307, i128::MAX as f64 / 100.0)] {
            let rows = ["a", "b"].map(|id| row(id, "餐饮", Some(amount), "consume", NOW_MS));
            let book = serde_json::to_value(Book::new(&january(), rows.to_vec())).unwrap();
            assert_eq!(book["sums"]["consume"], json!(sum));
        }
    }

    #[test]
    fn sums_are_exact_and_ordered() {
        let (early, late) = (1_736_784_000_000, 1_736_908_245_123);
        let rows = vec![
            row("a", "餐饮", Some(0.1), "consume", late),
            row("b", "餐饮", Some(0.2), "consume", late),
            row("c", "工资", Some(8000.0), "income", early),
            row("d", "交通", Some(20.5), "consume", early),
            row("e", "交通", None, "consume", early),
            row("f", "交通", Some(1.0), "consume", 0),
        ];
        let book = serde_json::to_value(Book::new(&january(), rows)).unwrap();
        assert_eq!(
            book["days"],
            json!([{"date": "2025-01-14", "consume": 20.5, "income": 8000.0, "count": 3},
                {"date": "2025-01-15", "consume": 0.3, "income": 0.0, "count": 2}])
        );
        assert_eq!(
            book["sums"],
            json!({"consume": 20.8, "income": 8000.0, "count": 5, "categories": [
                {"category": "工资", "kind": "income", "amount": 8000.0, "count": 1},
                {"category": "交通", "kind": "consume", "amount": 20.5, "count": 2},
                {"category": "餐饮", "kind": "consume", "amount": 0.3, "count": 2}]})
        );
        let ids: Vec<_> =
            book["bookings"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
        assert_eq!(ids, ["a", "b", "c", "d", "e"]);
        assert_eq!(book["bookings"][4]["amount"], json!(null));
    }
}
