//! The tool.
//!
//! For an invalid expression the tool returns the current time with a warning, because an expense
//! must not be lost because of its date. It also emits an event with the arguments, which shows the
//! expressions that people miss.

use wattle_plugin::log::{self, Level};
use wattle_plugin::prelude::{
    Failure, ToolContext, ToolOutput, Unchecked, clock, emit, json, tool,
};

use crate::expression::{DateInput, Expression};
use crate::resolve::resolve;

/// Name of the event that contains arguments without a valid date.
const FAILED: &str = "date_parse_failed";

/// 将结构化的时间语义数据转换为 13 位时间戳。支持相对日期（如昨天、今天）和绝对日期（如1月2日）
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
        "invalid date expression; the current time is used",
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
    fn output_repeats_the_input() {
        let host = host();
        let input = json!({"type": "relative", "offset": -1, "unit": "day"});
        let answer = call(&host, &input);
        assert_eq!(answer, json!({"timestamp": 1_736_784_000_000_i64, "input": input}));
        assert!(host.emitted().is_empty() && host.logged().is_empty());
    }

    #[test]
    fn invalid_expression_is_now_with_a_warning() {
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
    fn s2_05_to_08_the_schema_is_a_union_discriminated_by_type() {
        let schema = testing::tool_schema::<parse_date_expression>();
        assert_eq!(schema["type"], "object");
        let kinds = schema["oneOf"].as_array().unwrap();
        let of = |kind: &Value, field: &str| {
            let description = &kind["properties"][field]["description"];
            description.as_str().unwrap_or_default().to_owned()
        };
        let [relative, absolute] = &kinds[..] else { panic!("{schema}") };
        assert_eq!(relative["properties"]["type"]["const"], "relative");
        assert_eq!(relative["properties"]["unit"]["const"], "day");
        assert_eq!(relative["required"], json!(["type", "offset", "unit"]));
        assert_eq!(of(relative, "offset"), "相对天数偏移：-1=昨天, 0=今天, 1=明天, -2=前天");
        assert_eq!(of(relative, "unit"), "时间单位，目前只支持 'day'");
        assert_eq!(absolute["properties"]["type"]["const"], "absolute");
        assert_eq!(absolute["required"], json!(["type", "month", "day"]));
        assert_eq!(of(absolute, "year"), "年份，不传则使用当前年");
        assert_eq!(of(absolute, "month"), "月份（1-12）");
        assert_eq!(of(absolute, "day"), "日期（1-31）");
        for (field, last) in [("month", 12), ("day", 31)] {
            let field = &absolute["properties"][field];
            assert_eq!((&field["minimum"], &field["maximum"]), (&json!(1), &json!(last)));
        }
    }
}
