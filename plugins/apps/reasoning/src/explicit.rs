//! Values that stand in the user's text as they are: telephone numbers, mail addresses, numbers of
//! documents. A plan that forgets one would answer about all rows instead of the one that was
//! asked about, so the executor looks after them.

use crate::catalog::Catalog;

/// Digits of a mobile number in China.
const MOBILE_DIGITS: usize = 11;

/// Fewest digits of a document number; shorter ones are more likely words such as `B2B`.
const IDENTIFIER_DIGITS: usize = 3;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Phone,
    Email,
    Identifier,
}

impl Kind {
    /// Words by which an attribute says that it holds such values.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Phone => &["phone", "mobile", "手机", "电话"],
            Self::Email => &["email", "mail", "邮箱"],
            Self::Identifier => &["编号", "单号", "编码"],
        }
    }

    /// The field for such a value. With several that could hold it, only the model can tell.
    pub(crate) fn field<'a>(self, catalog: &Catalog<'a>) -> Option<&'a str> {
        match catalog.fields_about(self.words()).as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }
}

/// The values in a text, in their order.
pub(crate) fn values(text: &str) -> Vec<(Kind, String)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "@._+-".contains(c);
    let tokens = text.split(|c: char| !is_part(c));
    let mut found: Vec<(Kind, String)> = Vec::new();
    for token in tokens.map(|token| token.trim_matches(['.', '-', '_'])) {
        if let Some(value) = value(token).filter(|value| !found.contains(value)) {
            found.push(value);
        }
    }
    found
}

fn value(token: &str) -> Option<(Kind, String)> {
    let digits: String = token.chars().filter(char::is_ascii_digit).collect();
    let is_number = token.chars().all(|c| c.is_ascii_digit() || "+-".contains(c));
    let national = digits.strip_prefix("86").filter(|_| digits.len() > MOBILE_DIGITS);
    let national = national.unwrap_or(&digits);
    if is_number {
        let is_mobile = national.len() == MOBILE_DIGITS && national.starts_with('1');
        return is_mobile.then(|| (Kind::Phone, national.to_owned()));
    }
    if token.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.')) {
        return Some((Kind::Email, token.to_owned()));
    }
    let is_identifier = token.starts_with(|c: char| c.is_ascii_uppercase())
        && digits.len() >= IDENTIFIER_DIGITS
        && token.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-');
    is_identifier.then(|| (Kind::Identifier, token.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::{Kind, values};

    #[test]
    fn values_are_found_between_other_words() {
        let check = |text: &str, expected: &[(Kind, &str)]| {
            let expected: Vec<_> =
                expected.iter().map(|(kind, value)| (*kind, (*value).to_owned())).collect();
            assert_eq!(values(text), expected, "{text}");
        };
        check("查询手机号13800138000的客户", &[(Kind::Phone, "13800138000")]);
        check("电话 +86-13800138000。", &[(Kind::Phone, "13800138000")]);
        check("邮箱是 li.lei@example.com，对吗", &[(Kind::Email, "li.lei@example.com")]);
        check("订单 SO-2024-0007 和 SO-2024-0007", &[(Kind::Identifier, "SO-2024-0007")]);
        check("2024 年 B2B 客户有 12345 个", &[]);
        check("", &[]);
    }
}
