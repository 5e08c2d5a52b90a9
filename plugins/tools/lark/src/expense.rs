//! Expenses in the form of models, and their validation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The categories of the table.
pub(crate) const CATEGORIES: [&str; 15] = [
    "交通",
    "零食",
    "日用品",
    "餐饮",
    "教育",
    "娱乐",
    "旅游",
    "衣服",
    "工资",
    "房租",
    "购物",
    "礼物",
    "蔬果",
    "个人护理",
    "医疗",
];

/// Minimum timestamp in milliseconds, in 1973. Lower values are timestamps in seconds, or errors.
const EARLIEST_MS: i64 = 100_000_000_000;

/// The last millisecond of the year 9999.
const LATEST_MS: i64 = 253_402_300_799_999;

/// Whether a booking is an expense or income.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    #[default]
    Consume,
    Income,
}

impl Kind {
    /// Returns the text in the table.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Consume => "支出",
            Self::Income => "收入",
        }
    }
}

/// The arguments, as models read them.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Arguments {
    /// 备注：花在什么上，如 打车
    #[serde(rename = "remark")]
    _remark: String,
    /// 分类
    #[serde(rename = "category")]
    #[schemars(extend("enum" = CATEGORIES))]
    _category: String,
    /// 金额，单位为元
    #[serde(rename = "amount")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    _amount: f64,
    /// 日期：parseDateExpression 返回的 13 位毫秒时间戳；用户没有提到日期时不传
    #[serde(rename = "date", default)]
    _date: Option<i64>,
    /// 收支：consume 为支出（默认），income 为收入
    #[serde(rename = "type", default)]
    _kind: Kind,
}

/// One expense or income.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expense {
    pub(crate) remark: String,
    pub(crate) category: String,
    pub(crate) amount: f64,
    /// Milliseconds since 1970; `None` for now.
    pub(crate) date_ms: Option<i64>,
    pub(crate) kind: Kind,
}

impl Expense {
    /// Parses the arguments of a call.
    ///
    /// # Errors
    ///
    /// Returns a message for the model about the first error.
    pub(crate) fn read(arguments: &Value) -> Result<Self, String> {
        let fields = arguments.as_object().ok_or("参数必须是一个对象")?;
        let category = text(fields, "category")?;
        if !CATEGORIES.contains(&category.as_str()) {
            return Err(format!("category 只能是：{}", CATEGORIES.join("、")));
        }
        Ok(Self {
            remark: text(fields, "remark")?,
            category,
            amount: amount(fields)?,
            date_ms: date_ms(fields)?,
            kind: kind(fields)?,
        })
    }
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<String, String> {
    let text = fields.get(name).and_then(Value::as_str).map(str::trim);
    text.filter(|text| !text.is_empty()).map(str::to_owned).ok_or_else(|| format!("缺少 {name}"))
}

fn amount(fields: &Map<String, Value>) -> Result<f64, String> {
    let amount = fields.get("amount").and_then(Value::as_f64);
    amount
        .filter(|amount| amount.is_finite() && *amount > 0.0)
        .ok_or_else(|| "amount 必须是大于 0 的数字".to_owned())
}

fn date_ms(fields: &Map<String, Value>) -> Result<Option<i64>, String> {
    let Some(date) = fields.get("date").filter(|date| !date.is_null()) else {
        return Ok(None);
    };
    let whole = date.as_f64().filter(|date| date.fract() == 0.0).map(|date| date as i64);
    let number = date.as_i64().or(whole);
    number
        .filter(|date| (EARLIEST_MS..=LATEST_MS).contains(date))
        .map(Some)
        .ok_or_else(|| "date 必须是 parseDateExpression 返回的 13 位毫秒时间戳".to_owned())
}

fn kind(fields: &Map<String, Value>) -> Result<Kind, String> {
    match fields.get("type") {
        None | Some(Value::Null) => Ok(Kind::default()),
        Some(kind) => {
            Kind::deserialize(kind).map_err(|_| "type 只能是 consume 或 income".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Expense, Kind};

    #[test]
    fn missing_fields_have_defaults() {
        let said = json!({"remark": " 打车 ", "category": "交通", "amount": 20, "extra": 1});
        let expense = Expense {
            remark: "打车".to_owned(),
            category: "交通".to_owned(),
            amount: 20.0,
            date_ms: None,
            kind: Kind::Consume,
        };
        assert_eq!(Expense::read(&said), Ok(expense.clone()));
        let said = json!({"remark": "打车", "category": "交通", "amount": 20.0, "type": "income",
            "date": 1_736_784_000_000.0});
        let date_ms = Some(1_736_784_000_000);
        assert_eq!(Expense::read(&said), Ok(Expense { date_ms, kind: Kind::Income, ..expense }));
    }

    #[test]
    fn errors_name_the_field() {
        let base = json!({"remark": "打车", "category": "交通", "amount": 20});
        for (field, value, reason) in [
            ("remark", json!(""), "缺少 remark"),
            ("remark", json!(null), "缺少 remark"),
            ("category", json!("其他"), "category 只能是：交通、"),
            ("amount", json!(0), "amount 必须是大于 0 的数字"),
            ("amount", json!("20"), "amount 必须是大于 0 的数字"),
            ("date", json!("2025-01-14"), "date 必须是"),
            ("date", json!(1_736_784_000), "date 必须是"),
            ("date", json!(1e300), "date 必须是"),
            ("type", json!("支出"), "type 只能是"),
        ] {
            let mut said = base.clone();
            said[field] = value;
            let wrong = Expense::read(&said).unwrap_err();
            assert!(wrong.starts_with(reason), "{field}: {wrong}");
        }
        assert!(Expense::read(&json!(null)).is_err());
    }
}
