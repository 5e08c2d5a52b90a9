//! The tool itself.
//!
//! What it does not understand is answered with the present moment and a warning: an expense must
//! not be lost because of its date. Such arguments are written down as an event, so that it can be
//! seen which expressions people miss.

use wattle_plugin::log::{self, Level};
use wattle_plugin::prelude::{
    Failure, ToolContext, ToolOutput, Unchecked, clock, emit, json, tool,
};

use crate::expression::{DateInput, Expression};
use crate::resolve::resolve;

/// Name of the event that carries arguments that were not understood.
const FAILED: &str = "date_parse_failed";

/// 把结构化的日期语义换算成 13 位毫秒时间戳，支持相对日期（昨天、今天、明天等）和具体日期（如 1 月 2 日）。
#[tool(name = "parseDateExpression")]
pub(crate) fn parse_date_expression(
    _context: &ToolContext,
    args: Unchecked<DateInput>,
) -> Result<ToolOutput, Failure> {
    let now_ms = clock::now_ms();
    let resolved = match Expression::read(&args.raw) {
        Ok(expression) => resolve(expression, now_ms)?.ok_or_else(|| "日期不存在".to_owned()),
        Err(reason) => Err(reason),
    };
    let reason = match resolved {
        Ok(timestamp) => {
            return ToolOutput::json(&json!({ "timestamp": timestamp, "input": args.raw }));
        }
        Err(reason) => reason,
    };
    log::write(
        Level::Warn,
        "a date expression was not understood; the present moment was taken",
        &[("arguments", args.raw.clone()), ("violations", json!(args.violations))],
    );
    emit::custom(FAILED, args.raw.clone())?;
    let warning = format!("无法识别日期（{reason}），已使用当前时间");
    ToolOutput::json(&json!({ "timestamp": now_ms, "input": args.raw, "warning": warning }))
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{ToolContext, Value, json};
    use wattle_plugin::testing::{self, FakeHost};

    use super::parse_date_expression;

    const NOW_MS: i64 = 1_736_908_245_123;

    fn host() -> FakeHost {
        FakeHost::new().now_ms(NOW_MS).zone("Asia/Shanghai", 28_800)
    }

    fn call(host: &FakeHost, arguments: &Value) -> Value {
        let call =
            || testing::call_tool::<parse_date_expression>(&ToolContext::default(), arguments);
        let output = host.run(call).unwrap();
        assert!(!output.is_error);
        assert_eq!(Some(output.text_content()), output.structured.as_ref().map(Value::to_string));
        output.structured.unwrap()
    }

    #[test]
    fn the_answer_repeats_the_input() {
        let host = host();
        let input = json!({"type": "relative", "offset": -1, "unit": "day"});
        let answer = call(&host, &input);
        assert_eq!(answer, json!({"timestamp": 1_736_784_000_000_i64, "input": input}));
        assert!(host.emitted().is_empty() && host.logged().is_empty());
    }

    #[test]
    fn what_is_not_understood_is_now_with_a_warning() {
        for input in [
            json!({"type": "week"}),
            json!({"type": "absolute", "month": 13, "day": 1}),
            json!({"type": "absolute", "month": 1, "day": 0}),
            json!({"type": "absolute", "month": 2, "day": 30}),
            json!({"type": "relative", "offset": 0.5, "unit": "day"}),
            json!("昨天"),
        ] {
            let host = host();
            let answer = call(&host, &input);
            assert_eq!(answer["timestamp"], NOW_MS, "{input}");
            assert_eq!(answer["input"], input);
            assert!(answer["warning"].as_str().unwrap().contains("已使用当前时间"), "{answer}");
            assert_eq!(host.emitted(), [("date_parse_failed".to_owned(), input)]);
            assert_eq!(host.logged().len(), 1);
        }
    }

    #[test]
    fn models_see_an_object_with_all_fields() {
        let schema = testing::tool_schema::<parse_date_expression>();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["required"], json!(["type"]));
        let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(fields, ["type", "offset", "unit", "year", "month", "day"]);
    }
}
