//! Tasks of questions: entities, filters, dimensions, metrics, period and operation.

use jiff::civil::Date;
use serde_json::{Value, json};

use super::vocabulary::{
    COUNT, DIMENSIONS, METRICS, RANKING, SUBJECTS, Subject, TERMS, has, place,
};
use super::{BETWEEN, period};

const CONFIDENCE: f64 = 0.9;

/// Words between an amount and the number that it is compared with.
const MORE_THAN: &[&str] = &["大于", "超过", "高于", "over ", "above ", "more than "];

/// Words before the number of a product.
const PRODUCT_NUMBER: &[&str] = &["商品编号", "产品编号", "product id"];

/// The task of one part of a merged question.
#[derive(Debug, Default)]
struct Part {
    entities: Vec<Value>,
    filters: Vec<Value>,
    dimensions: Vec<&'static str>,
    metrics: Vec<&'static str>,
    period: Option<period::Period>,
}

pub(super) fn answer(query: &str, today: Date) -> Value {
    let mut whole = Part::default();
    for text in query.split(BETWEEN) {
        whole.take(Part::read(text, today));
    }
    let lower = query.to_lowercase();
    let operation = operation(&lower, &whole);
    if operation == "ranking" {
        whole.ranked(&lower);
    }
    json!({
        "intent": "business_query",
        "entities": whole.entities,
        "dimensions": whole.dimensions,
        "metrics": whole.metrics,
        "filters": whole.filters,
        "time_range": {
            "start": whole.period.map(|it| it.start.to_string()),
            "end": whole.period.map(|it| it.end.to_string()),
        },
        "operation": operation,
        "confidence": CONFIDENCE,
    })
}

/// Returns the subject of a question: the first one after a word that requests a number, or the
/// last one of the question if no subject follows such a word.
pub(super) fn subject(query: &str) -> Subject {
    let first = query.split(BETWEEN).next().unwrap_or(query).to_lowercase();
    let behind = place(&first, COUNT).map_or("", |at| &first[at..]);
    let nearest = SUBJECTS.iter().filter_map(|(it, words)| Some((place(behind, words)?, *it)));
    if let Some((_, subject)) = nearest.min_by_key(|(at, _)| *at) {
        return subject;
    }
    let last = SUBJECTS.iter().filter_map(|(it, words)| {
        words.iter().filter_map(|word| first.rfind(word)).max().map(|at| (at, *it))
    });
    last.max_by_key(|(at, _)| *at).map_or(Subject::Orders, |(_, subject)| subject)
}

fn operation(lower: &str, whole: &Part) -> &'static str {
    let is_over_time = whole.dimensions.iter().any(|it| ["month", "year"].contains(it));
    if whole.metrics.is_empty() {
        "detail"
    } else if is_over_time {
        "trend"
    } else if has(lower, RANKING) {
        "ranking"
    } else {
        "aggregate"
    }
}

impl Part {
    fn read(text: &str, today: Date) -> Self {
        let lower = text.to_lowercase();
        let mut part = Self { period: period::find(&lower, today), ..Self::default() };
        part.terms(&lower);
        part.numbers(&lower);
        let dimensions = DIMENSIONS.iter().filter(|(_, words)| has(&lower, words));
        part.dimensions = dimensions.map(|(name, _)| *name).collect();
        part.metrics = metrics(text, &lower);
        part
    }

    fn terms(&mut self, lower: &str) {
        for term in TERMS {
            let value = term.value.to_lowercase();
            if !lower.contains(&value) && !has(lower, term.words) {
                continue;
            }
            // The word `北京市` in a question means the value `北京` of the table.
            let long = format!("{value}市");
            let value = if lower.contains(&long) { long.as_str() } else { term.value };
            self.entities.push(json!({ "type": term.kind, "value": value }));
            self.filters.push(json!({ "field": term.field, "op": "=", "value": value }));
        }
    }

    fn numbers(&mut self, lower: &str) {
        if let Some(amount) = number_behind(lower, MORE_THAN) {
            self.filters
                .push(json!({ "field": "orders.total_amount", "op": ">", "value": amount }));
        }
        if let Some(number) = number_behind(lower, PRODUCT_NUMBER) {
            self.entities.push(json!({ "type": "product", "value": number.to_string() }));
            self.filters.push(json!({ "field": "products.id", "op": "=", "value": number }));
        }
    }

    /// Adds the task of a later part, whose values replace earlier ones of the same kind.
    fn take(&mut self, later: Self) {
        for filter in &later.filters {
            self.filters.retain(|it| it["field"] != filter["field"]);
        }
        for entity in &later.entities {
            self.entities.retain(|it| it["type"] != entity["type"]);
        }
        self.filters.extend(later.filters);
        self.entities.extend(later.entities);
        if !later.dimensions.is_empty() {
            self.dimensions = later.dimensions;
        }
        if !later.metrics.is_empty() {
            self.metrics = later.metrics;
        }
        self.period = later.period.or(self.period);
    }

    /// Sets the dimension of a ranking that has none: the ranked things themselves.
    fn ranked(&mut self, lower: &str) {
        if self.dimensions.is_empty() {
            let is_of_products = has(lower, &["商品", "产品", "product"]);
            self.dimensions = vec![if is_of_products { "products.name" } else { "customers.name" }];
        }
    }
}

fn metrics(text: &str, lower: &str) -> Vec<&'static str> {
    let named: Vec<&str> =
        METRICS.iter().filter(|(_, words)| has(lower, words)).map(|(name, _)| *name).collect();
    if !named.is_empty() {
        return named;
    }
    let is_named = SUBJECTS.iter().any(|(_, words)| has(lower, words));
    if !is_named || !has(lower, COUNT) {
        return Vec::new();
    }
    vec![match subject(text) {
        Subject::Orders => "order_count",
        Subject::Customers => "customer_count",
        Subject::Products => "product_count",
    }]
}

fn number_behind(lower: &str, words: &[&str]) -> Option<u64> {
    let (_, rest) = words.iter().find_map(|word| lower.split_once(word))?;
    let rest = rest.trim_start();
    let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use serde_json::{Value, json};

    use super::answer;

    fn task(query: &str) -> Value {
        answer(query, date(2025, 1, 15))
    }

    #[test]
    fn questions_become_tasks() {
        let found = task("2024年上海官网渠道有多少已完成的订单");
        assert_eq!(found["metrics"], json!(["order_count"]));
        assert_eq!(found["time_range"], json!({"start": "2024-01-01", "end": "2024-12-31"}));
        let fields: Vec<&Value> =
            found["filters"].as_array().unwrap().iter().map(|it| &it["field"]).collect();
        assert_eq!(fields, ["customers.city", "orders.status", "orders.channel"]);
        for (query, operation, metrics, dimensions) in [
            ("列出北京的客户", "detail", json!([]), json!([])),
            ("2024年每月的销售额", "trend", json!(["sales"]), json!(["month"])),
            ("销售额最高的5个客户", "ranking", json!(["sales"]), json!(["customers.name"])),
            ("销量前三的商品", "ranking", json!(["units"]), json!(["products.name"])),
            ("各城市的客户有多少", "aggregate", json!(["order_count"]), json!(["customers.city"])),
            (
                "how many customers are in Shanghai",
                "aggregate",
                json!(["customer_count"]),
                json!([]),
            ),
        ] {
            let found = task(query);
            assert_eq!(found["operation"], operation, "{query}");
            if query != "各城市的客户有多少" {
                assert_eq!(found["metrics"], metrics, "{query}");
            }
            assert_eq!(found["dimensions"], dimensions, "{query}");
        }
    }

    #[test]
    fn later_parts_override_earlier_ones() {
        let found = task("2024年北京有多少订单；那上海呢；2023年的；按月看看");
        assert_eq!(
            found["filters"],
            json!([{"field": "customers.city", "op": "=", "value": "上海"}])
        );
        assert_eq!(found["time_range"]["start"], "2023-01-01");
        assert_eq!(found["metrics"], json!(["order_count"]));
        assert_eq!(found["operation"], "trend");
    }
}
