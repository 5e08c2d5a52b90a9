//! Reasoning that a model writes into its text, between `<think>` and `</think>`.
//!
//! Local servers, and gateways before them, often leave it there, in whatever format they answer. A text that
//! begins so is taken apart. Some leave out the first mark, since it is part of the prompt that they make: the
//! second one alone says that everything before it was reasoning, unless it is quoted. The marks may be cut
//! anywhere.

use crate::sink::Sink;

/// What opens reasoning at the beginning of a text.
const OPEN: &str = "<think>";

/// What closes it.
const CLOSE: &str = "</think>";

/// Signs before a mark that is spoken about.
const QUOTES: [char; 6] = ['`', '"', '\'', '“', '‘', '「'];

/// The text of an answer and its reasoning, as they arrive. Each piece is handed on at once.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) reasoning: String,
    think: Think,
    /// Something was handed on behind the text that cannot be taken back with it.
    is_kept: bool,
}

impl Words {
    /// Nothing yet; marks in the text mean nothing.
    pub(super) fn unmarked() -> Self {
        Self { think: Think::Outside, ..Self::default() }
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.reasoning.len()
    }

    /// Takes a piece of the text, in which the model may have left its reasoning.
    pub(super) fn feed(&mut self, piece: &str, sink: &Sink<'_>) {
        for piece in self.think.feed(piece) {
            self.add(piece, sink);
        }
    }

    /// Takes a piece that is text, whatever is in it.
    pub(super) fn say(&mut self, piece: &str, sink: &Sink<'_>) {
        self.add(Piece::Text(piece.to_owned()), sink);
    }

    /// Takes a piece of the reasoning. A service that keeps it apart leaves no marks in the text.
    pub(super) fn reason(&mut self, piece: &str, sink: &Sink<'_>) {
        if !piece.is_empty() {
            self.end(sink);
            self.add(Piece::Reasoning(piece.to_owned()), sink);
        }
    }

    /// From now on what was handed on as text stays text.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// Hands on what was held back. Marks mean nothing from now on.
    pub(super) fn end(&mut self, sink: &Sink<'_>) {
        if let Some(piece) = self.think.end() {
            self.add(piece, sink);
        }
    }

    fn add(&mut self, piece: Piece, sink: &Sink<'_>) {
        match piece {
            Piece::Reasoning(text) => {
                sink.reasoning(&text);
                self.reasoning.push_str(&text);
            }
            Piece::Closing(text) if !self.is_kept => {
                // It was handed on as text already.
                let said = std::mem::take(&mut self.text);
                sink.restart();
                self.add(Piece::Reasoning(said + &text), sink);
            }
            Piece::Text(text) | Piece::Closing(text) => {
                sink.text(&text);
                self.text.push_str(&text);
            }
        }
    }
}

/// One piece of a text.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Reasoning(String),
    /// All text so far, and this, was reasoning.
    Closing(String),
}

/// Takes a text apart as it arrives.
#[derive(Debug)]
enum Think {
    /// Nothing but what may become the opening mark was seen.
    Start(String),
    /// Inside, with what may become the closing mark.
    Inside(String),
    /// White space after the closing mark belongs to neither side.
    Closed,
    /// Text, unless a closing mark follows, with what may become a mark, and the sign before that.
    Unopened(String, Option<char>),
    /// All further text is text.
    Outside,
}

impl Default for Think {
    fn default() -> Self {
        Self::Start(String::new())
    }
}

impl Think {
    /// Takes a piece of text.
    fn feed(&mut self, piece: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut rest = piece.to_owned();
        while !rest.is_empty() {
            (*self, rest) = std::mem::take(self).step(rest, &mut pieces);
        }
        pieces
    }

    /// What was held back when the text ends.
    fn end(&mut self) -> Option<Piece> {
        match std::mem::replace(self, Self::Outside) {
            Self::Start(held) | Self::Unopened(held, _) if !held.is_empty() => {
                Some(Piece::Text(held))
            }
            Self::Inside(held) if !held.is_empty() => Some(Piece::Reasoning(held)),
            _ => None,
        }
    }

    /// One move to another state, with what is left to read there.
    fn step(self, rest: String, pieces: &mut Vec<Piece>) -> (Self, String) {
        match self {
            Self::Start(held) => {
                let all = held + &rest;
                let begins = all.trim_start();
                if let Some(inside) = begins.strip_prefix(OPEN) {
                    return (Self::Inside(String::new()), inside.to_owned());
                }
                if OPEN.starts_with(begins) {
                    return (Self::Start(all), String::new());
                }
                (Self::Unopened(String::new(), None), all)
            }
            Self::Unopened(held, before) => unopened(held + &rest, before, pieces),
            Self::Inside(held) => {
                let all = held + &rest;
                if let Some((reasoning, after)) = all.split_once(CLOSE) {
                    push(pieces, Piece::Reasoning(reasoning.to_owned()));
                    return (Self::Closed, after.to_owned());
                }
                let (sure, held) = all.split_at(all.len() - held_back(&all, CLOSE));
                push(pieces, Piece::Reasoning(sure.to_owned()));
                (Self::Inside(held.to_owned()), String::new())
            }
            Self::Closed => match rest.trim_start() {
                "" => (Self::Closed, String::new()),
                text => (Self::Outside, text.to_owned()),
            },
            Self::Outside => {
                push(pieces, Piece::Text(rest));
                (Self::Outside, String::new())
            }
        }
    }
}

fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    let is_empty = match &piece {
        Piece::Text(text) | Piece::Reasoning(text) => text.is_empty(),
        Piece::Closing(_) => false,
    };
    if !is_empty {
        pieces.push(piece);
    }
}

/// A text that did not begin with the opening mark.
fn unopened(all: String, before: Option<char>, pieces: &mut Vec<Piece>) -> (Think, String) {
    let close = all.find(CLOSE);
    if all.find(OPEN).is_some_and(|open| close.is_none_or(|close| open < close)) {
        return (Think::Outside, all);
    }
    if let Some(close) = close {
        let sign = all[..close].chars().next_back().or(before);
        if sign.is_some_and(|sign| QUOTES.contains(&sign)) {
            return (Think::Outside, all);
        }
        pieces.push(Piece::Closing(all[..close].to_owned()));
        return (Think::Closed, all[close + CLOSE.len()..].to_owned());
    }
    let held = held_back(&all, CLOSE).max(held_back(&all, OPEN));
    let (sure, held) = all.split_at(all.len() - held);
    push(pieces, Piece::Text(sure.to_owned()));
    (Think::Unopened(held.to_owned(), sure.chars().next_back().or(before)), String::new())
}

/// How much of a text's end may be the beginning of a mark.
fn held_back(text: &str, mark: &str) -> usize {
    (1..mark.len()).rev().find(|length| text.ends_with(&mark[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use wattle_run::ports::model::NoDeltas;

    use super::*;

    /// The text and the reasoning, fed in pieces of `size` characters.
    fn read(text: &str, size: usize) -> (String, String) {
        let mut think = Think::default();
        let letters: Vec<char> = text.chars().collect();
        let mut pieces: Vec<Piece> = letters
            .chunks(size)
            .flat_map(|piece| think.feed(&piece.iter().collect::<String>()))
            .collect();
        pieces.extend(think.end());
        let mut read = (String::new(), String::new());
        for piece in pieces {
            match piece {
                Piece::Text(text) => read.0.push_str(&text),
                Piece::Reasoning(text) => read.1.push_str(&text),
                Piece::Closing(text) => {
                    read.1 = std::mem::take(&mut read.0) + &text;
                }
            }
        }
        read
    }

    #[test]
    fn marks_take_a_text_apart() {
        let cases = [
            ("hello", "hello", ""),
            ("<think>hm</think>\n\nhello", "hello", "hm"),
            ("\n<think>a</thin b</think>x </think>", "x </think>", "a</thin b"),
            ("say <think>no</think>", "say <think>no</think>", ""),
            ("<thin", "<thin", ""),
            ("<think>never ends</", "", "never ends</"),
            ("<think></think>", "", ""),
            ("The user greets me.\n</think>\n\nHello!", "Hello!", "The user greets me.\n"),
            ("</think>Hello!", "Hello!", ""),
            ("close it with `</think>` then", "close it with `</think>` then", ""),
            ("a <think> b </think> c", "a <think> b </think> c", ""),
            ("a </thin", "a </thin", ""),
            ("", "", ""),
        ];
        for (whole, text, reasoning) in cases {
            for size in [1, 2, 3, 100] {
                assert_eq!(read(whole, size), (text.into(), reasoning.into()), "{whole} by {size}");
            }
        }
    }

    #[test]
    fn words_before_a_closing_mark_are_reasoning_unless_more_was_handed_on() {
        let sink = Sink::new(&NoDeltas);
        for (is_kept, text, reasoning) in [(false, "Hello!", "hm\n"), (true, "hm\nHello!", "")] {
            let mut words = Words::default();
            words.feed("hm\n", &sink);
            if is_kept {
                words.keep();
            }
            words.feed("</think>\n\nHello!", &sink);
            words.end(&sink);
            assert_eq!((words.text.as_str(), words.reasoning.as_str()), (text, reasoning));
        }
    }
}
