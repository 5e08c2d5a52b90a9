//! Taking off what models put around a statement, and MySQL's quotes.

use sqlparser::tokenizer::{Location, Token};
use wattle_plugin::sql::Dialect;

use crate::statement::{Refusal, tokens};

/// The bare statement: without Markdown fence, without semicolon at its end, with quotes that
/// both databases know.
pub(super) fn clean(text: &str, dialect: &Dialect) -> Result<String, Refusal> {
    let text = standard_quotes(unfenced(text));
    let tokens = tokens(&text, dialect)?;
    let mut end = text.len();
    for token in tokens.iter().rev() {
        match token.token {
            Token::Whitespace(_) | Token::EOF => {}
            Token::SemiColon => end = offset(&text, token.span.start),
            _ => break,
        }
    }
    let text = text[..end].trim();
    if text.is_empty() { Err(Refusal::Empty) } else { Ok(text.to_owned()) }
}

/// Bytes before a place in a text. Lines and columns count characters from 1.
pub(super) fn offset(text: &str, place: Location) -> usize {
    let mut at = 0;
    for _ in 1..place.line {
        let Some(end) = text[at..].find('\n') else { return text.len() };
        at += end + 1;
    }
    let column = usize::try_from(place.column.saturating_sub(1)).unwrap_or(usize::MAX);
    let rest = text[at..].char_indices().nth(column);
    rest.map_or(text.len(), |(index, _)| at + index)
}

fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```") else { return text };
    let inner = inner.split_once('\n').map_or(inner, |(_, rest)| rest);
    inner.rsplit_once("```").map_or(inner, |(before, _)| before)
}

/// MySQL's backticks become the quotes of standard SQL, outside of texts.
fn standard_quotes(text: &str) -> String {
    let mut inside: Option<char> = None;
    let turn = |character: char| {
        match (inside, character) {
            (None, '\'' | '"' | '`') => inside = Some(character),
            (Some(quote), _) if quote == character => inside = None,
            _ => {}
        }
        match (inside, character) {
            (None | Some('`'), '`') => '"',
            _ => character,
        }
    };
    text.chars().map(turn).collect()
}
