//! Classifies errors and extracts the missing names. Only the text of an error is available: of the
//! app's own checks, of the host, of SQLite, of PostgreSQL, or of MySQL.

use crate::state::ErrorType;

/// Parts of error texts in lower case with `|` between them, the most specific first. A word in
/// parentheses is the rule by which the host refused a statement.
const SIGNS: [(ErrorType, &str); 4] = [
    (
        ErrorType::UnknownColumn,
        "sql_generation_quoted_text|sql_generation_early_name|sql_generation_unknown_field|42703|\
         no such column|unknown column",
    ),
    (
        ErrorType::UnknownTable,
        "sql_generation_unknown_table|42p01|no such table|unknown table|(rule table)|\
         (rule catalog)",
    ),
    (
        ErrorType::ObjectNotFound,
        "sql_generation_unsupported_from|42883|3f000|42704|(rule function)|(rule schema)|\
         no such function|does not exist",
    ),
    (
        ErrorType::SyntaxError,
        "sql_generation_syntax_error|sql_generation_too_deep|42601|syntax error|\
         error in your sql syntax|cannot parse the sql query",
    ),
];

/// Texts before a missing name, with the characters that end the name.
const BEFORE_NAME: [(&str, &[char]); 10] = [
    ("sql_generation_unknown_field: ", &[]),
    ("sql_generation_unknown_table: ", &[]),
    ("no such column: ", &[' ', '(', ';']),
    ("no such table: ", &[' ', '(', ';']),
    ("Unknown column '", &['\'']),
    ("column \"", &['"']),
    ("relation \"", &['"']),
    ("column ", &[' ']),
    ("Table '", &['\'']),
    ("the table `", &['`']),
];

/// Returns the kind of an error.
pub(crate) fn classify(text: &str) -> ErrorType {
    let lower = text.to_lowercase();
    let is_mysql_table = lower.contains("table '") && lower.contains("doesn't exist");
    if is_mysql_table {
        return ErrorType::UnknownTable;
    }
    let found = SIGNS.iter().find(|(_, signs)| signs.split('|').any(|sign| lower.contains(sign)));
    found.map_or(ErrorType::ExecutionError, |(kind, _)| *kind)
}

/// Returns the missing names, as the text writes them.
pub(crate) fn missing_names(text: &str) -> Vec<String> {
    let found = BEFORE_NAME.iter().find_map(|(before, ends)| {
        let (_, rest) = text.split_once(before)?;
        Some(rest.split(*ends).next().unwrap_or(rest))
    });
    let names = found.into_iter().flat_map(|names| names.split(", ")).map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{classify, missing_names};
    use crate::state::ErrorType::{
        ExecutionError, ObjectNotFound, SyntaxError, UnknownColumn, UnknownTable,
    };

    #[test]
    fn error_texts_of_all_databases_are_classified() {
        for (text, kind, names) in [
            ("cannot query database `b`: no such column: o.paid", UnknownColumn, "o.paid"),
            ("no such table: refunds", UnknownTable, "refunds"),
            ("near \"FORM\": syntax error", SyntaxError, ""),
            ("sql_generation_too_deep: SQL 嵌套过深", SyntaxError, ""),
            ("no such function: date_format", ObjectNotFound, ""),
            ("column \"paid\" does not exist (SQLSTATE 42703)", UnknownColumn, "paid"),
            ("column o.paid does not exist (SQLSTATE 42703)", UnknownColumn, "o.paid"),
            ("relation \"refunds\" does not exist (SQLSTATE 42P01)", UnknownTable, "refunds"),
            ("syntax error at or near \"x\" (SQLSTATE 42601)", SyntaxError, ""),
            ("function date_format(date) does not exist (SQLSTATE 42883)", ObjectNotFound, ""),
            ("type \"money2\" does not exist (SQLSTATE 42704)", ObjectNotFound, ""),
            ("schema \"x\" does not exist (SQLSTATE 3F000)", ObjectNotFound, ""),
            ("Unknown column 'o.paid' in 'field list'", UnknownColumn, "o.paid"),
            ("Table 'shop.refunds' doesn't exist", UnknownTable, "shop.refunds"),
            ("You have an error in your SQL syntax; check", SyntaxError, ""),
            ("sql_generation_unknown_field: a.b, c.d", UnknownColumn, "a.b c.d"),
            ("sql_generation_quoted_text: \"paid\": 'paid'", UnknownColumn, ""),
            (
                "sql_generation_quoted_text: \"x\": 'x'\nsql_generation_unknown_field: a.b, c",
                UnknownColumn,
                "a.b c",
            ),
            (
                "sql_generation_early_name: \"a\"\nsql_generation_unknown_field: b",
                UnknownColumn,
                "b",
            ),
            ("sql_generation_unsupported_from: FROM: JSON_TABLE", ObjectNotFound, ""),
            ("sql_generation_unknown_table: refunds", UnknownTable, "refunds"),
            ("the table `users` is not allowed; allowed: `a` (rule table)", UnknownTable, "users"),
            ("the function `f` is not among those known (rule function)", ObjectNotFound, ""),
            ("empty_result", ExecutionError, ""),
            ("division by zero (SQLSTATE 22012)", ExecutionError, ""),
        ] {
            assert_eq!(classify(text), kind, "{text}");
            assert_eq!(missing_names(text).join(" "), names, "{text}");
        }
    }
}
