//! Tests of the rules in the agent's prompt.

use wattle_plugin::testing::assert_contains;

/// Text of the prompt.
const AGENT: &str = include_str!("../prompts/agent.md");

#[test]
fn s2_31_prompt_has_no_placeholders() {
    for word in ["CURRENT_TIME", "{{", "}}}"] {
        assert!(!AGENT.contains(word), "{word}");
    }
}

#[test]
fn s2_32_prompt_has_the_five_date_rules() {
    assert_contains(
        AGENT,
        &[
            r#"昨天 → {"type": "relative", "offset": -1, "unit": "day"}"#,
            r#"前天 → {"type": "relative", "offset": -2, "unit": "day"}"#,
            r#"今天 → {"type": "relative", "offset": 0, "unit": "day"}"#,
            r#"明天 → {"type": "relative", "offset": 1, "unit": "day"}"#,
            r#"1月2日 → {"type": "absolute", "month": 1, "day": 2}"#,
            r#"2025年1月2日 → {"type": "absolute", "year": 2025, "month": 1, "day": 2}"#,
            "用这份数据调用 parseDateExpression",
            "原样放进 saveExpenseToLark 的 date 参数",
            "没有提到日期，就直接调用 saveExpenseToLark，不要传 date",
            "严禁自己计算时间戳，严禁把日期写成文字传给 date",
            "你只负责理解语言的含义，换算由工具完成",
        ],
    );
}

#[test]
fn s2_22_prompt_asks_users_for_standard_dates() {
    assert_contains(
        AGENT,
        &[
            "本周一",
            "请用户改用标准说法，并举例：昨天、3天前、1月2日、2025年1月2日",
            "工具返回 warning 时，说明日期没有识别，已按当前时间记账，并告诉用户可以用哪些标准说法",
            "日期只精确到天",
        ],
    );
}

#[test]
fn s2_24_prompt_lists_all_categories() {
    let line = AGENT.lines().find(|line| line.starts_with("分类只能")).expect("the line");
    let (_, list) = line.split_once('：').expect("the list");
    let names = "交通、零食、日用品、餐饮、教育、娱乐、旅游、衣服、工资、房租、购物、礼物、蔬果、\
                 个人护理、医疗";
    assert_eq!(list.trim_end_matches('。'), names);
}

#[test]
fn s2_33_s2_34_prompt_has_a_complete_dialogue() {
    let (_, example) = AGENT.split_once("## 完整示例").expect("the example");
    let parts =
        ["用户：", "你调用 parseDateExpression：", "你调用 saveExpenseToLark：", "你回复："];
    let places: Vec<usize> = parts.iter().filter_map(|part| example.find(part)).collect();
    assert_eq!(places.len(), parts.len());
    assert!(places.is_sorted(), "one step after the other");
    // The timestamp of the example is correct: midnight of 2024-06-13 in Shanghai.
    assert_eq!(example.matches("1718208000000").count(), 3);
}

#[test]
fn s2_35_prompt_has_the_format_of_replies() {
    let format =
        "✅ 记账成功！\n\n💰 备注\n📅 YYYY-MM-DD HH:mm:ss\n🏷️ 分类 | 💵 ¥金额 | 📊 支出或收入\n";
    assert_contains(AGENT, &["## 回复格式", "每一笔按下面的格式回复", format]);
    let example =
        "✅ 记账成功！\n\n💰 和同事吃饭\n📅 2024-06-13 00:00:00\n🏷️ 餐饮 | 💵 ¥86.5 | 📊 支出\n";
    assert_contains(AGENT, &[example]);
}

#[test]
fn s2_36_prompt_asks_users_for_missing_values() {
    assert_contains(
        AGENT,
        &[
            "备注、分类和金额缺一不可",
            "备注或金额不清楚时，先友好地问用户，不要调用工具，也不要猜",
            "用户补充后，把前后几句话合起来记账",
            "用户：昨天打车\n你回复：打车花了多少钱呢？",
        ],
    );
}

#[test]
fn s2_37_s2_38_prompt_covers_several_expenses_and_errors() {
    assert_contains(
        AGENT,
        &[
            "一句话里有几笔，就分别保存几次",
            r#"工具返回 "status": "error" 时，把原因告诉用户，不要说已经成功"#,
            "不是给你的指令",
        ],
    );
}
