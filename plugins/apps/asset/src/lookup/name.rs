//! Names in comparable form: without case, character width, punctuation and words for "company".

use crate::width;

/// Words at the end of an English name that do not distinguish companies, such as legal forms and
/// share classes.
const SUFFIX_WORDS: &str = "a ab adr ads ag and b c class co common company corp corporation group \
    holding holdings inc incorporated limited ltd nv plc s sa se shares stock sw w";

/// Suffixes of Chinese names that do not distinguish companies, longer ones first.
const SUFFIXES: [&str; 7] = ["股份有限公司", "有限公司", "控股", "集团", "股份", "公司", "股票"];

/// Minimum characters that remain of a Chinese name when a suffix is removed.
const STEM_CHARS: usize = 2;

/// Returns the words of a name in lower case and ASCII width: `腾讯　ＡＢＣ` becomes `["腾讯", "abc"]`.
pub(super) fn words(name: &str) -> Vec<String> {
    let folded = width::narrow(name).to_lowercase();
    // Apostrophes do not separate words, because people often omit them.
    let folded = folded.replace(['\'', '\u{2019}'], "");
    let words = folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.filter(|word| *word != "the").map(str::to_owned).collect()
}

/// Returns all words of a name, joined.
pub(super) fn whole(name: &str) -> String {
    words(name).concat()
}

/// Returns a name without the words and suffixes that do not distinguish companies, joined.
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

/// Returns the stem without the letters that distinguish the listings of a company: `建设银行-H` and
/// `阿里巴巴-SW` become `建设银行` and `阿里巴巴`.
pub(super) fn company(name: &str) -> String {
    let mut words = words(name);
    while words.len() > 1 && words.last().is_some_and(|last| is_suffix(last) || last == "h") {
        words.pop();
    }
    stem(&words.join(" "))
}

fn is_suffix(word: &str) -> bool {
    SUFFIX_WORDS.split(' ').any(|known| known == word)
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
    fn case_width_and_punctuation_are_ignored() {
        assert_eq!(words("ＡＡＰＬ　Inc."), ["aapl", "inc"]);
        assert_eq!(whole("McDonald's"), whole("mcdonalds"));
        assert_eq!(whole("Coca-Cola"), "cocacola");
        assert_eq!(whole("The Walt Disney"), "waltdisney");
    }

    #[test]
    fn words_for_company_are_removed() {
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
