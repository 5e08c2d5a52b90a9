//! SQL statements for tasks, in the dialect of the database.

use serde_json::{Value, json};

use super::task::subject;
use super::vocabulary::{MISLEADING, Subject};

/// Default number of rows of a list.
const ROWS: u32 = 100;

/// Default number of rows of a ranking.
const RANKS: u32 = 10;

/// Chinese digits, for phrases such as `前三`.
const DIGITS: [char; 10] = ['一', '二', '三', '四', '五', '六', '七', '八', '九', '十'];

/// Fields by the type of entity.
const FIELDS: [(&str, &str); 7] = [
    ("city", "customers.city"),
    ("segment", "customers.segment"),
    ("customer", "customers.name"),
    ("status", "orders.status"),
    ("channel", "orders.channel"),
    ("category", "products.category"),
    ("product", "products.id"),
];

/// Columns of lists: field and alias.
const ORDER_COLUMNS: &[(&str, &str)] = &[
    ("orders.order_no", "order_no"),
    ("customers.name", "customer_name"),
    ("customers.city", "city"),
    ("orders.status", "status"),
    ("orders.channel", "channel"),
    ("orders.total_amount", "order_amount"),
    ("orders.ordered_at", "ordered_at"),
];
const CUSTOMER_COLUMNS: &[(&str, &str)] = &[
    ("customers.name", "customer_name"),
    ("customers.city", "city"),
    ("customers.segment", "segment"),
    ("customers.registered_at", "registered_at"),
];
const PRODUCT_COLUMNS: &[(&str, &str)] = &[
    ("products.name", "product_name"),
    ("products.category", "category"),
    ("products.brand", "brand"),
    ("products.unit_price", "unit_price"),
    ("products.stock", "stock"),
];

/// The input of a statement.
struct Draft<'a> {
    query: &'a str,
    task: &'a Value,
    hidden: &'a Value,
    dialect: &'a str,
    base: Subject,
}

pub(super) fn answer(input: &Value, dialect: &str) -> Value {
    let query = input["rewritten_query"].as_str().unwrap_or_default();
    let task = &input["parse_result"];
    let draft = Draft {
        query,
        task,
        hidden: &input["hidden_context_result"],
        dialect,
        base: base(query, task),
    };
    json!({ "sql": draft.statement(), "entity_mappings": draft.mappings() })
}

/// Returns the base table. Customers and products are counted in their own tables, other metrics in
/// orders.
fn base(query: &str, task: &Value) -> Subject {
    match names(task, "metrics").first().copied() {
        Some("customer_count") => Subject::Customers,
        Some("product_count") => Subject::Products,
        Some(_) => Subject::Orders,
        None => subject(query),
    }
}

impl Draft<'_> {
    fn statement(&self) -> String {
        let metrics = names(self.task, "metrics");
        let dimensions = names(self.task, "dimensions");
        if metrics.is_empty() {
            return self.list();
        }
        let mut columns: Vec<(String, String)> =
            dimensions.iter().map(|name| (self.dimension(name), alias(name).to_owned())).collect();
        let measured: Vec<(&str, &str, &str)> =
            metrics.iter().map(|name| self.metric(name)).collect();
        for (field, column, _) in &measured {
            columns.push(((*field).to_owned(), (*column).to_owned()));
        }
        columns.dedup();
        let groups: Vec<&str> = dimensions.iter().map(|name| alias(name)).collect();
        let figures = measured.iter().map(|(_, _, figure)| *figure);
        let shown: Vec<&str> = groups.iter().copied().chain(figures).collect();
        let mut text = format!("{}\nSELECT {}\nFROM base", self.cte(&columns), shown.join(", "));
        if !groups.is_empty() {
            text.push_str(&format!("\nGROUP BY {}", groups.join(", ")));
            text.push_str(&self.order(&groups, measured[0].2));
        }
        text
    }

    fn order(&self, groups: &[&str], figure: &str) -> String {
        let figure = figure.rsplit(' ').next().unwrap_or(figure);
        match self.task["operation"].as_str() {
            Some("trend") => format!("\nORDER BY {}", groups.join(", ")),
            Some("ranking") => {
                format!("\nORDER BY {figure} DESC\nLIMIT {}", self.wanted().unwrap_or(RANKS))
            }
            _ => format!("\nORDER BY {figure} DESC"),
        }
    }

    fn list(&self) -> String {
        let (columns, order) = match self.base {
            Subject::Orders => (ORDER_COLUMNS, "ordered_at DESC, order_no"),
            Subject::Customers => (CUSTOMER_COLUMNS, "customer_name"),
            Subject::Products => (PRODUCT_COLUMNS, "product_name"),
        };
        let named: Vec<(String, String)> =
            columns.iter().map(|(field, name)| ((*field).to_owned(), (*name).to_owned())).collect();
        let shown: Vec<&str> = columns.iter().map(|(_, name)| *name).collect();
        let limit = self.wanted().unwrap_or(ROWS);
        let shown = shown.join(", ");
        format!("{}\nSELECT {shown}\nFROM base\nORDER BY {order}\nLIMIT {limit}", self.cte(&named))
    }

    /// Returns the common table expression `base`: the used fields, with all conditions.
    fn cte(&self, columns: &[(String, String)]) -> String {
        let conditions = self.conditions();
        let used: Vec<&str> = columns
            .iter()
            .map(|(field, _)| field.as_str())
            .chain(conditions.iter().map(String::as_str))
            .collect();
        let needs = |table: &str| used.iter().any(|text| text.contains(&format!("{table}.")));
        let (from, alive) = self.sources(&needs);
        let conditions: Vec<String> = alive
            .iter()
            .map(|table| format!("{table}.is_deleted = 0"))
            .chain(conditions.iter().cloned())
            .collect();
        let columns: Vec<String> =
            columns.iter().map(|(field, name)| format!("{field} AS {name}")).collect();
        format!(
            "WITH base AS (\n  SELECT {}\n  {from}\n  WHERE {}\n)",
            columns.join(", "),
            conditions.join(" AND ")
        )
    }

    /// Returns the joins, and the joined tables that have a column for deleted rows.
    fn sources(&self, needs: &dyn Fn(&str) -> bool) -> (String, Vec<&'static str>) {
        let has_products = needs("products");
        let has_orders = needs("orders") || needs("order_items");
        match self.base {
            Subject::Customers if !has_orders && !has_products => {
                ("FROM customers".to_owned(), vec!["customers"])
            }
            Subject::Products if !has_orders && !needs("customers") => {
                ("FROM products".to_owned(), vec!["products"])
            }
            _ => {
                let mut from = "FROM orders".to_owned();
                let mut alive = vec!["orders"];
                if needs("customers") {
                    from.push_str("\n  JOIN customers ON customers.id = orders.customer_id");
                    alive.push("customers");
                }
                if has_products || needs("order_items") {
                    from.push_str("\n  JOIN order_items ON order_items.order_id = orders.id");
                }
                if has_products {
                    from.push_str("\n  JOIN products ON products.id = order_items.product_id");
                    alive.push("products");
                }
                (from, alive)
            }
        }
    }

    fn conditions(&self) -> Vec<String> {
        let filters = self.task["filters"].as_array().into_iter().flatten();
        let mut conditions: Vec<String> = filters
            .map(|filter| {
                let field = filter["field"].as_str().unwrap_or_default();
                let op = filter["op"].as_str().unwrap_or("=");
                format!("{field} {op} {}", literal(&self.real(field, &filter["value"])))
            })
            .collect();
        let column = match self.base {
            Subject::Customers => "customers.registered_at",
            _ => "orders.ordered_at",
        };
        let day = |name: &str| self.task["time_range"][name].as_str();
        if let Some(start) = day("start") {
            conditions.push(format!("{column} >= '{start}'"));
        }
        let after =
            day("end").and_then(|end| end.parse::<jiff::civil::Date>().ok()?.tomorrow().ok());
        if let Some(after) = after {
            conditions.push(format!("{column} < '{after}'"));
        }
        conditions
    }

    /// Returns the value of the table that is similar to `value`, if the last failure has samples,
    /// or else `value`.
    fn real(&self, field: &str, value: &Value) -> Value {
        let samples = self.hidden["probe_samples"].as_array().into_iter().flatten();
        let mut of_field = samples.filter(|sample| sample["field"] == field);
        let (Some(text), Some(sample)) = (value.as_str(), of_field.next()) else {
            return value.clone();
        };
        let values = sample["values"].as_array().into_iter().flatten();
        let known: Vec<&str> = values.filter_map(Value::as_str).collect();
        let alike = known.iter().find(|it| text.contains(**it) || it.contains(text));
        match alike {
            Some(found) if !known.contains(&text) => json!(found),
            _ => value.clone(),
        }
    }

    /// Returns the field of a metric, its alias, and the aggregate with its name.
    fn metric(&self, name: &str) -> (&'static str, &'static str, &'static str) {
        let is_by_item =
            names(self.task, "dimensions").iter().any(|it| it.starts_with("products."))
                || self.conditions().iter().any(|it| it.starts_with("products."));
        match name {
            "sales" if self.query.contains(MISLEADING) => {
                ("orders.order_amount", "amount", "SUM(amount) AS total_sales")
            }
            "sales" if is_by_item => ("order_items.amount", "amount", "SUM(amount) AS total_sales"),
            "sales" => ("orders.total_amount", "amount", "SUM(amount) AS total_sales"),
            "units" => ("order_items.quantity", "quantity", "SUM(quantity) AS total_quantity"),
            "avg_amount" => {
                ("orders.total_amount", "amount", "ROUND(AVG(amount), 2) AS avg_amount")
            }
            "customer_count" => {
                ("customers.id", "customer_id", "COUNT(DISTINCT customer_id) AS customer_count")
            }
            "product_count" => {
                ("products.id", "product_id", "COUNT(DISTINCT product_id) AS product_count")
            }
            _ => ("orders.id", "order_id", "COUNT(DISTINCT order_id) AS order_count"),
        }
    }

    fn dimension(&self, name: &str) -> String {
        let (sqlite, postgres) = match name {
            "month" => ("%Y-%m", "YYYY-MM"),
            "year" => ("%Y", "YYYY"),
            field => return field.to_owned(),
        };
        match self.dialect {
            "postgres" => format!("to_char(orders.ordered_at, '{postgres}')"),
            _ => format!("strftime('{sqlite}', orders.ordered_at)"),
        }
    }

    /// Returns the number of rows in `前5`, `前三`, `最高的5个` and `top 5`.
    fn wanted(&self) -> Option<u32> {
        let lower = self.query.to_lowercase();
        let rest = ["前", "top ", "最高的", "最多的", "最大的"]
            .iter()
            .find_map(|word| lower.split_once(word))
            .map(|(_, rest)| rest)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let spoken = || {
            let first = rest.chars().next()?;
            DIGITS.iter().position(|digit| *digit == first)
        };
        digits.parse().ok().or_else(|| u32::try_from(spoken()? + 1).ok())
    }

    fn mappings(&self) -> Vec<Value> {
        let entities = self.task["entities"].as_array().into_iter().flatten();
        entities
            .filter_map(|entity| {
                let (_, field) = FIELDS.iter().find(|(kind, _)| entity["type"] == *kind)?;
                Some(json!({
                    "type": entity["type"], "value": entity["value"], "field": field,
                    "reason": "问题中点名的取值",
                }))
            })
            .collect()
    }
}

fn names<'a>(task: &'a Value, list: &str) -> Vec<&'a str> {
    task[list].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn alias(dimension: &str) -> &str {
    match dimension {
        "customers.name" => "customer_name",
        "products.name" => "product_name",
        name => name.rsplit('.').next().unwrap_or(name),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_string(),
    }
}
