//! Tests of correct statements with imprecise entity mappings: how many questions still succeed if
//! the model makes the same mistake in each of its attempts.

use serde_json::{Value, json};
use wattle_suite::nl2sql::says;
use wattle_suite::server::{Setup, TestServer};

/// Questions that name one or two values each.
pub(crate) const QUESTIONS: [&str; 6] = [
    "2024年北京有多少订单",
    "列出上海金额大于5000的订单",
    "2024年官网渠道每月的销售额",
    "有哪些手机商品",
    "2024年深圳已完成的订单有多少",
    "企业客户的销售额最高的5个城市",
];

/// The number of attempts of one question.
const ATTEMPTS: u32 = 3;

/// A mistake of the model.
#[derive(Clone, Copy, Debug)]
enum Slip {
    /// `CUSTOMERS.City`
    Case,
    /// `"customers"."city"`
    Quoted,
    /// `main.customers.city`
    Schema,
    /// `city`
    Bare,
    /// `base.city`: the CTE instead of the table.
    Cte,
    /// Another allowed field, which the statement does not use.
    WrongField,
    /// A field that does not exist.
    UnknownField,
    /// No mappings at all.
    Missing,
    /// An additional mapping for a metric, with an expression instead of a field.
    Figure,
    /// The value with other characters.
    OtherValue,
}

/// All mistakes.
const SLIPS: [Slip; 10] = [
    Slip::Case,
    Slip::Quoted,
    Slip::Schema,
    Slip::Bare,
    Slip::Cte,
    Slip::WrongField,
    Slip::UnknownField,
    Slip::Missing,
    Slip::Figure,
    Slip::OtherValue,
];

impl Slip {
    fn apply(self, mappings: &mut Vec<Value>) {
        match self {
            Self::Missing => mappings.clear(),
            Self::Figure => mappings.push(json!({
                "type": "metric", "value": "销售额", "field": "SUM(orders.total_amount)",
                "reason": "指标",
            })),
            Self::OtherValue => {
                for mapping in mappings {
                    let value = mapping["value"].as_str().unwrap_or_default();
                    mapping["value"] = json!(format!("“{value}”"));
                }
            }
            _ => {
                for mapping in mappings {
                    let field = mapping["field"].as_str().unwrap_or_default();
                    mapping["field"] = json!(self.field(field));
                }
            }
        }
    }

    fn field(self, field: &str) -> String {
        let (table, column) = field.split_once('.').expect("table.field");
        match self {
            Self::Case => format!("{}.{}", table.to_uppercase(), column.to_uppercase()),
            Self::Quoted => format!("\"{table}\".`{column}`"),
            Self::Schema => format!("main.{field}"),
            Self::Bare => column.to_owned(),
            Self::Cte => format!("base.{column}"),
            Self::WrongField => "customers.registered_at".to_owned(),
            Self::UnknownField => format!("{table}.{column}_name_zh"),
            Self::Missing | Self::Figure | Self::OtherValue => field.to_owned(),
        }
    }
}

/// Returns the correct completion of the model with a mistake in its mappings.
fn bent(result: &Value, slip: Slip) -> Value {
    let mut mappings = result["sql_result"]["entity_mappings"].as_array().unwrap().clone();
    assert!(!mappings.is_empty(), "{result}");
    slip.apply(&mut mappings);
    json!({ "sql": result["sql_result"]["sql"], "entity_mappings": mappings })
}

/// Returns the questions with the results of a model that answers them correctly.
async fn answered(server: &TestServer) -> Vec<(&'static str, Value)> {
    let mut answered = Vec::new();
    for question in QUESTIONS {
        let result = server.ask(question).await;
        assert_eq!(result["final_status"], "success", "{question}: {result}");
        answered.push((question, result));
    }
    answered
}

/// Returns how many questions succeed, and how many of them at the first attempt.
async fn survivors(
    server: &TestServer,
    questions: &[(&'static str, Value)],
    slip: Slip,
) -> (usize, usize) {
    let (mut well, mut at_once) = (0, 0);
    for (question, right) in questions {
        says(server, "sql", &bent(right, slip), ATTEMPTS);
        let result = server.ask(question).await;
        server.standin().clear_faults();
        if result["final_status"] == "success" {
            well += 1;
            at_once += usize::from(result["hidden_context_retry_count"] == 0);
            let rows = |result: &Value| result["sql_validate_result"]["result"].clone();
            assert_eq!(rows(&result), rows(right), "{slip:?} {question}");
        }
    }
    (well, at_once)
}

/// Checks for each mistake that `each` questions succeed at the first attempt. Each mistake is
/// tried with other questions.
pub(crate) async fn all_survive(each: usize) {
    let server = Setup::nl2sql().await.start().await;
    let mut questions = answered(&server).await;
    let mut table = String::from("slip          ends well  at once\n");
    let mut lost = Vec::new();
    for slip in SLIPS {
        let (well, at_once) = survivors(&server, &questions[..each], slip).await;
        questions.rotate_left(each);
        let name = format!("{slip:?}");
        table.push_str(&format!("{name:<13} {well:>3} of {each}  {at_once:>3} of {each}\n"));
        if at_once < each {
            lost.push(name);
        }
    }
    assert!(lost.is_empty(), "lost: {lost:?}\n{table}");
}

/// `eval::imprecise` tries each mistake with all questions.
#[tokio::test]
async fn s4_31_a_correct_statement_succeeds_with_imprecise_mappings() {
    all_survive(2).await;
}
