//! Names in comparable form: without case, width, punctuation and the words for "company".

use crate::width;

/// Words that end a company's English name and do not tell it from another, and share classes.
const SUFFIX_WORDS: [&str; 30] = [
    "a",
    "ab",
    "adr",
    "ads",
    "ag",
    "and",
    "b",
    "c",
    "class",
    "co",
    "common",
    "company",
    "corp",
    "corporation",
    "group",
    "holding",
    "holdings",
    "inc",
    "incorporated",
    "limited",
    "ltd",
    "nv",
    "plc",
    "s",
    "sa",
    "se",
    "shares",
    "stock",
    "sw",
    "w",
];

/// The same at the end of a Chinese name, longer ones first.
const SUFFIXES: [&str; 7] = ["股份有限公司", "有限公司", "控股", "集团", "股份", "公司", "股票"];

/// Characters of a Chinese name that must stay when its end is cut off.
const STEM_CHARS: usize = 2;

/// Lower-case words with ASCII width: `腾讯　ＡＢＣ` becomes `["腾讯", "abc"]`.
pub(super) fn words(name: &str) -> Vec<String> {
    let folded = width::narrow(name).to_lowercase();
    // An apostrophe does not end a word: people leave it out.
    let folded = folded.replace(['\'', '\u{2019}'], "");
    let words = folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.filter(|word| *word != "the").map(str::to_owned).collect()
}

/// The whole name as one word.
pub(super) fn whole(name: &str) -> String {
    words(name).concat()
}

/// The name without what only says that it is a company.
pub(super) fn stem(name: &str) -> String {
    let mut words = words(name);
    while words.len() > 1 && words.last().is_some_and(|last| is_suffix(last)) {
        words.pop();
    }
    let mut stem = words.concat();
    while let Some(shorter) = without_suffix(&stem) {
        stem = shorter;
    }
    stem
}

/// The stem without the letters that tell the listings of one company apart: `建设银行-H` and
/// `阿里巴巴-SW` become `建设银行` and `阿里巴巴`.
pub(super) fn company(name: &str) -> String {
    let mut words = words(name);
    while words.len() > 1 && words.last().is_some_and(|last| is_suffix(last) || last == "h") {
        words.pop();
    }
    stem(&words.join(" "))
}

fn is_suffix(word: &str) -> bool {
    SUFFIX_WORDS.contains(&word)
}

fn without_suffix(name: &str) -> Option<String> {
    SUFFIXES
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix))
        .find(|rest| rest.chars().count() >= STEM_CHARS)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{stem, whole, words};

    #[test]
    fn case_width_and_punctuation_do_not_count() {
        assert_eq!(words("ＡＡＰＬ　Inc."), ["aapl", "inc"]);
        assert_eq!(whole("McDonald's"), whole("mcdonalds"));
        assert_eq!(whole("Coca-Cola"), "cocacola");
        assert_eq!(whole("The Walt Disney"), "waltdisney");
    }

    #[test]
    fn words_for_company_are_cut_off() {
        for (name, expected) in [
            ("Apple Inc.", "apple"),
            ("Tencent Holdings Limited", "tencent"),
            ("Alphabet Inc. Class A Common Stock", "alphabet"),
            ("腾讯控股有限公司", "腾讯"),
            ("小米集团-W", "小米"),
            ("美团-W", "美团"),
            ("公司", "公司"),
            ("Group", "group"),
        ] {
            assert_eq!(stem(name), expected, "{name}");
        }
    }
}
