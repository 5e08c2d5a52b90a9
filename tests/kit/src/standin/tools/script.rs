//! Tool calls that the user writes: `call echo {"text":"a"}` on a separate line. Several lines are
//! several calls of one turn, `then` begins the next turn, and `again` repeats the turns forever.

use super::{Dialogue, Move};

/// Follows the script in the last user message, if it has one.
pub(super) fn decide(dialogue: &Dialogue<'_>) -> Option<Move> {
    let (mut turns, mut is_endless) = (vec![Vec::new()], false);
    for line in dialogue.user.lines().map(str::trim) {
        match line {
            "then" => turns.push(Vec::new()),
            "again" => is_endless = true,
            line => turns.last_mut()?.extend(line.strip_prefix("call ").map(call)),
        }
    }
    turns.retain(|calls| !calls.is_empty());
    if turns.is_empty() {
        return None;
    }
    let done = dialogue.rounds.len();
    let now = if is_endless { done % turns.len() } else { done };
    Some(match turns.into_iter().nth(now) {
        Some(calls) => Move::Call(calls),
        None => Move::Say(report(dialogue)),
    })
}

fn call(text: &str) -> (String, String) {
    let (name, arguments) = text.trim().split_once(char::is_whitespace).unwrap_or((text, "{}"));
    (name.to_owned(), arguments.trim().to_owned())
}

fn report(dialogue: &Dialogue<'_>) -> String {
    let calls = dialogue.rounds.iter().flatten();
    let lines = calls.map(|call| format!("{}: {}", call.ask.name, call.answer));
    format!("The tools answered:\n{}", lines.collect::<Vec<_>>().join("\n"))
}
