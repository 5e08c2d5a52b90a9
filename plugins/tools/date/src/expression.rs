//! Date expressions of models: a union with the discriminator `type`.
//!
//! The declared schema is this union. Providers reject a union at the top level of a tool's
//! arguments; an agent converts it before it offers the tool to a model (see `fold` in the plugin
//! `std`).

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};
use wattle_plugin::prelude::Deserialize;

/// A date expression. A new kind, such as a time of day, is a new variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expression {
    /// `days` days after today, or before today if negative.
    Relative { days: i64 },
    /// A month and a day, in the current year if there is no year.
    Absolute { year: Option<i64>, month: i64, day: i64 },
}

impl Expression {
    /// Parses the arguments of a call.
    ///
    /// # Errors
    ///
    /// Returns a message for the model about the first error.
    pub(crate) fn read(arguments: &Value) -> Result<Self, String> {
        let fields = arguments.as_object().ok_or("参数必须是一个对象")?;
        match fields.get("type").and_then(Value::as_str) {
            Some("relative") => {
                let days = required(fields, "offset")?;
                match fields.get("unit").and_then(Value::as_str) {
                    Some("day") => Ok(Self::Relative { days }),
                    _ => Err("unit 只能是 day".to_owned()),
                }
            }
            Some("absolute") => Ok(Self::Absolute {
                year: whole(fields, "year")?,
                month: required(fields, "month")?,
                day: required(fields, "day")?,
            }),
            _ => Err("type 只能是 relative 或 absolute".to_owned()),
        }
    }
}

fn required(fields: &Map<String, Value>, name: &str) -> Result<i64, String> {
    whole(fields, name)?.ok_or_else(|| format!("缺少 {name}"))
}

/// Returns an integer, which may be written as `1.0`. Returns `None` for an absent field and for
/// null.
fn whole(fields: &Map<String, Value>, name: &str) -> Result<Option<i64>, String> {
    /// Integers below this limit are exact as `f64`.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let wrong = || format!("{name} 必须是整数");
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Ok(Some(number)),
            (None, Some(number)) if number.fract() == 0.0 && number.abs() < EXACT => {
                Ok(Some(number as i64))
            }
            _ => Err(wrong()),
        },
        Some(_) => Err(wrong()),
    }
}

/// Provides the schema of the arguments that models read.
#[derive(Debug, Deserialize)]
pub(crate) struct DateInput {}

impl JsonSchema for DateInput {
    fn schema_name() -> Cow<'static, str> {
        "DateInput".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "oneOf": [
                {
                    "title": "RelativeDate",
                    "type": "object",
                    "properties": {
                        "type": { "type": "string", "const": "relative" },
                        "offset": {
                            "type": "integer",
                            "description": "相对天数偏移：-1=昨天, 0=今天, 1=明天, -2=前天",
                        },
                        "unit": {
                            "type": "string",
                            "const": "day",
                            "description": "时间单位，目前只支持 'day'",
                        },
                    },
                    "required": ["type", "offset", "unit"],
                },
                {
                    "title": "AbsoluteDate",
                    "type": "object",
                    "properties": {
                        "type": { "type": "string", "const": "absolute" },
                        "year": {
                            "type": "integer",
                            "minimum": 1970,
                            "maximum": 9999,
                            "description": "年份，不传则使用当前年",
                        },
                        "month": {
                            "type": "integer",
                            "minimum": 1,
                            "maximum": 12,
                            "description": "月份（1-12）",
                        },
                        "day": {
                            "type": "integer",
                            "minimum": 1,
                            "maximum": 31,
                            "description": "日期（1-31）",
                        },
                    },
                    "required": ["type", "month", "day"],
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Expression;

    #[test]
    fn both_kinds_are_parsed() {
        let absolute = |year| Expression::Absolute { year, month: 1, day: 2 };
        for (said, meant) in [
            (
                json!({"type": "relative", "offset": -1, "unit": "day"}),
                Expression::Relative { days: -1 },
            ),
            (
                json!({"type": "relative", "offset": 1.0, "unit": "day", "month": null}),
                Expression::Relative { days: 1 },
            ),
            (json!({"type": "absolute", "month": 1, "day": 2}), absolute(None)),
            (json!({"type": "absolute", "year": null, "month": 1, "day": 2.0}), absolute(None)),
            (json!({"type": "absolute", "year": 2024, "month": 1, "day": 2}), absolute(Some(2024))),
        ] {
            assert_eq!(Expression::read(&said), Ok(meant), "{said}");
        }
    }

    #[test]
    fn errors_name_the_field() {
        for (said, reason) in [
            (json!(null), "参数必须是一个对象"),
            (json!("昨天"), "参数必须是一个对象"),
            (json!({}), "type 只能是 relative 或 absolute"),
            (json!({"type": "week"}), "type 只能是 relative 或 absolute"),
            (json!({"type": "relative", "unit": "day"}), "缺少 offset"),
            (json!({"type": "relative", "offset": -1}), "unit 只能是 day"),
            (json!({"type": "relative", "offset": -1, "unit": "week"}), "unit 只能是 day"),
            (json!({"type": "relative", "offset": 0.5, "unit": "day"}), "offset 必须是整数"),
            (json!({"type": "relative", "offset": "-1", "unit": "day"}), "offset 必须是整数"),
            (json!({"type": "relative", "offset": 1e300, "unit": "day"}), "offset 必须是整数"),
            (json!({"type": "absolute", "month": 1}), "缺少 day"),
            (json!({"type": "absolute", "month": 1, "day": 1.5}), "day 必须是整数"),
        ] {
            assert_eq!(Expression::read(&said), Err(reason.to_owned()), "{said}");
        }
    }
}
