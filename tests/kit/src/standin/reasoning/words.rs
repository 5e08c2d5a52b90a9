//! Vocabulary of questions about business data.

use std::collections::BTreeSet;

/// Words that request statistics instead of rows.
pub(super) const STATISTICS: &[&str] =
    &["统计", "数量", "多少", "总额", "合计", "占比", "平均", "分布", "各", "排名"];

/// Words for actions.
pub(super) const ACTIONS: &[&str] =
    &["统计", "查询", "查看", "列出", "对比", "分析", "排名", "找出", "查"];

/// Words without meaning for the search. Longer ones precede shorter ones that they contain.
pub(super) const FILLERS: &[&str] = &[
    "[clarification]",
    "你好",
    "除了",
    "以外",
    "之外",
    "不是",
    "上个月",
    "上月",
    "这个月",
    "本月",
    "去年",
    "今年",
    "今天",
    "不超过",
    "不低于",
    "超过",
    "大于",
    "小于",
    "低于",
    "请问",
    "帮我",
    "看看",
    "一下",
    "想要",
    "哪些",
    "什么",
    "所有",
    "全部",
    "情况",
    "数据",
    "是多少",
    "多少",
    "数量",
    "信息",
    "明细",
    "最近",
    "怎么样",
    "有几",
    "我想",
    "我要",
    "按照",
    "分别",
    "谢谢",
    "请",
    "的",
    "了",
    "吗",
    "呢",
    "按",
    "各",
    "个",
    "有",
    "是",
    "和",
    "与",
    "在",
    "为",
    "我",
    "你",
    "想",
    "问",
    "前",
    "列",
];

/// Returns the position of a word in a text, in bytes.
pub(super) fn place(text: &str, word: &str) -> Option<usize> {
    if word.is_empty() { None } else { text.find(word) }
}

/// Returns the fraction of a name's bigrams that a text contains.
pub(super) fn alike(text: &str, name: &str) -> f64 {
    let (there, wanted) = (pairs(text), pairs(name));
    if wanted.is_empty() {
        return 0.0;
    }
    there.intersection(&wanted).count() as f64 / wanted.len() as f64
}

fn pairs(text: &str) -> BTreeSet<(char, char)> {
    let letters: Vec<char> = text.chars().filter(|c| c.is_alphanumeric()).collect();
    letters.windows(2).map(|pair| (pair[0], pair[1])).collect()
}

/// Splits a text at fillers, actions and all characters that are not alphanumeric.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let mut rest = text.to_owned();
    for word in FILLERS.iter().chain(ACTIONS) {
        rest = rest.replace(word, " ");
    }
    let is_part = |c: char| c.is_alphanumeric() || "-_@.".contains(c);
    let mut found: Vec<String> = Vec::new();
    for piece in rest.split(|c| !is_part(c)).flat_map(by_script) {
        if piece.chars().count() > 1 && !found.contains(&piece) {
            found.push(piece);
        }
    }
    found
}

/// Separates ASCII characters from others: `手机号13800138000` is two words.
fn by_script(piece: &str) -> Vec<String> {
    let mut parts: Vec<(bool, String)> = Vec::new();
    for c in piece.chars() {
        match parts.last_mut() {
            Some((is_ascii, part)) if *is_ascii == c.is_ascii() => part.push(c),
            _ => parts.push((c.is_ascii(), c.to_string())),
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn questions_are_split_into_words() {
        for (text, expected) in [
            ("查询手机号13800138000的客户", vec!["手机号", "13800138000", "客户"]),
            ("统计各区域的客户数量", vec!["区域", "客户"]),
            ("订单 SO-2024-0007", vec!["订单", "SO-2024-0007"]),
            ("你好", vec![]),
            ("帮我看看情况", vec![]),
        ] {
            assert_eq!(pieces(text), expected, "{text}");
        }
    }
}
