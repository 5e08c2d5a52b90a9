//! Reasoning that a model writes into its text, between `<think>` and `</think>`.
//!
//! Local servers, and gateways in front of them, often leave it there, in any wire format. The host splits a text that
//! starts with the opening tag. A tag may be split between chunks.
//!
//! Some services omit the opening tag, because it is part of their prompt. A closing tag alone then means that all text
//! before it was reasoning. This is a guess, and a wrong one removes text from a completion. The host makes it only
//! where it is likely: not for models whose services separate the reasoning, not in JSON, not within code, and not for
//! a tag that the text mentions.

use crate::sink::Sink;

/// The opening tag.
const OPEN: &str = "<think>";

/// The closing tag.
const CLOSE: &str = "</think>";

/// Maximum characters of leading white space that a text keeps.
const LEAD: usize = 256;

/// Words in the names of models whose services separate the reasoning from the text.
const APART: [&str; 4] = ["claude", "gemini", "gpt", "grok"];

/// Characters before a tag that the text mentions: quotes, brackets, marks of Markdown, diffs and programs, and white
/// space. Reasoning ends with its last word or with a line break.
const SPOKEN: [char; 26] = [
    '`', '"', '\'', '“', '‘', '„', '「', '『', '«', '(', '（', '[', '{', '}', '<', '>', '*', '_',
    '\\', '/', '|', '=', '+', '-', ' ', '\t',
];

/// The text and the reasoning of a response so far. Each delta is emitted as it arrives.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) reasoning: String,
    think: Think,
    /// Whether something was emitted after the text, which a restart would discard as well.
    is_fixed: bool,
}

impl Words {
    /// Creates an empty response of a model.
    pub(super) fn of(model: &str) -> Self {
        let (held, guesses) = (String::new(), !keeps_apart(model));
        Self { think: Think::Start { held, guesses }, ..Self::default() }
    }

    /// Creates an empty response in which tags are text.
    pub(super) fn unmarked() -> Self {
        Self::default()
    }

    /// Returns the bytes so far.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.reasoning.len()
    }

    /// Appends text that may contain reasoning within tags.
    pub(super) fn feed(&mut self, piece: &str, sink: &Sink<'_>) {
        for piece in self.think.feed(piece) {
            self.add(piece, sink);
        }
    }

    /// Appends text in which tags are text.
    pub(super) fn say(&mut self, piece: &str, sink: &Sink<'_>) {
        if !piece.is_empty() {
            self.end(sink);
            self.add(Piece::Text(piece.to_owned()), sink);
        }
    }

    /// Appends reasoning. A service that separates it leaves no tags in the text.
    pub(super) fn reason(&mut self, piece: &str, sink: &Sink<'_>) {
        if !piece.is_empty() {
            self.end(sink);
            self.add(Piece::Reasoning(piece.to_owned()), sink);
        }
    }

    /// Keeps the text emitted so far from becoming reasoning.
    pub(super) fn fix_text(&mut self) {
        self.is_fixed = true;
    }

    /// Handles the start of another part of the response. From now on a closing tag counts only if reasoning is open.
    pub(super) fn interrupt(&mut self, sink: &Sink<'_>) {
        if !matches!(self.think, Think::Inside(_)) {
            self.end(sink);
        }
    }

    /// Emits the text that was held back as a possible tag. From now on tags are text.
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
            Piece::Closing(text) if !self.is_fixed => {
                // The text was already emitted; the `restart` discards it.
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

/// A piece of a split text.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Reasoning(String),
    /// This text and all text before it is reasoning.
    Closing(String),
}

/// The state of the parser that splits a text.
#[derive(Debug, Default)]
enum Think {
    /// Only white space and a possible start of the opening tag so far.
    Start {
        /// The text so far.
        held: String,
        /// Whether a closing tag alone counts.
        guesses: bool,
    },
    /// In reasoning; holds a possible start of the closing tag.
    Inside(String),
    /// After the closing tag, where white space is dropped.
    Closed,
    /// In text that a closing tag may turn into reasoning.
    Unopened(Unopened),
    /// In text that stays text.
    #[default]
    Outside,
}

impl Think {
    /// Appends a chunk. Returns its parts.
    fn feed(&mut self, piece: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut rest = piece.to_owned();
        while !rest.is_empty() {
            (*self, rest) = std::mem::take(self).step(rest, &mut pieces);
        }
        pieces
    }

    /// Returns the text that is held back, at the end of the response.
    fn end(&mut self) -> Option<Piece> {
        match std::mem::take(self) {
            Self::Start { held, .. } | Self::Unopened(Unopened { held, .. })
                if !held.is_empty() =>
            {
                Some(Piece::Text(held))
            }
            Self::Inside(held) if !held.is_empty() => Some(Piece::Reasoning(held)),
            _ => None,
        }
    }

    /// Moves to the next state. Returns it with the rest of the chunk.
    fn step(self, rest: String, pieces: &mut Vec<Piece>) -> (Self, String) {
        match self {
            Self::Start { held, guesses } => begun(&(held + &rest), guesses),
            Self::Unopened(unopened) => unopened.step(&rest, pieces),
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

/// Decides the state after the first characters of a text. Holds back no more white space than a text keeps, so that
/// each chunk is read once.
fn begun(all: &str, guesses: bool) -> (Think, String) {
    let begins = all.trim_start();
    if let Some(inside) = begins.strip_prefix(OPEN) {
        return (Think::Inside(String::new()), inside.to_owned());
    }
    let lead = &all[..all.len() - begins.len()];
    let lead = lead.char_indices().nth(LEAD).map_or(lead, |(end, _)| &lead[..end]);
    let text = format!("{lead}{begins}");
    if OPEN.starts_with(begins) {
        return (Think::Start { held: text, guesses }, String::new());
    }
    // A text that starts with JSON has no reasoning before it.
    let think = if guesses && !begins.starts_with(['{', '[']) {
        Think::Unopened(Unopened::default())
    } else {
        Think::Outside
    };
    (think, text)
}

/// A text that did not start with the opening tag.
#[derive(Debug, Default)]
struct Unopened {
    /// A possible start of a tag.
    held: String,
    /// The character before `held`.
    before: Option<char>,
    code: Code,
}

impl Unopened {
    fn step(mut self, rest: &str, pieces: &mut Vec<Piece>) -> (Think, String) {
        let all = std::mem::take(&mut self.held) + rest;
        let close = all.find(CLOSE);
        if all.find(OPEN).is_some_and(|open| close.is_none_or(|close| open < close)) {
            return (Think::Outside, all);
        }
        if let Some(close) = close {
            let (before, mark) = all.split_at(close);
            self.read(before);
            if self.speaks() {
                return (Think::Outside, all);
            }
            pieces.push(Piece::Closing(before.to_owned()));
            return (Think::Closed, mark[CLOSE.len()..].to_owned());
        }
        let held = held_back(&all, CLOSE).max(held_back(&all, OPEN));
        let (sure, held) = all.split_at(all.len() - held);
        self.read(sure);
        push(pieces, Piece::Text(sure.to_owned()));
        held.clone_into(&mut self.held);
        (Think::Unopened(self), String::new())
    }

    fn read(&mut self, text: &str) {
        self.code.read(text);
        self.before = text.chars().next_back().or(self.before);
    }

    /// Returns whether a tag at this position is mentioned by the text rather than meant as a tag.
    fn speaks(&mut self) -> bool {
        self.code.is_open() || self.before.is_some_and(|sign| SPOKEN.contains(&sign))
    }
}

/// Tracks whether the end of a text is within code in Markdown.
#[derive(Debug, Default)]
struct Code {
    /// The number of consecutive backticks at the end.
    ticks: usize,
    /// The length of the fence that opened a code block; 0 outside of one.
    fence: usize,
    /// Whether the text so far ends within inline code.
    in_line: bool,
}

impl Code {
    fn read(&mut self, text: &str) {
        for sign in text.chars() {
            if sign == '`' {
                self.ticks += 1;
                continue;
            }
            self.end_row();
            self.in_line &= sign != '\n';
        }
    }

    fn is_open(&mut self) -> bool {
        self.end_row();
        self.fence > 0 || self.in_line
    }

    /// Handles the end of consecutive backticks.
    fn end_row(&mut self) {
        match std::mem::take(&mut self.ticks) {
            0 => {}
            1 | 2 => self.in_line = self.fence == 0 && !self.in_line,
            ticks if self.fence == 0 => (self.fence, self.in_line) = (ticks, false),
            ticks if ticks >= self.fence => self.fence = 0,
            _ => {}
        }
    }
}

/// Returns whether the services of a model separate its reasoning from the text.
fn keeps_apart(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    let name = model.rsplit('/').next().unwrap_or_default();
    // OpenAI's `o3` and similar names.
    let is_numbered =
        name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()));
    is_numbered || APART.iter().any(|word| model.contains(word))
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

/// Returns the length of the longest end of a text that may be the start of a tag.
fn held_back(text: &str, mark: &str) -> usize {
    (1..mark.len()).rev().find(|length| text.ends_with(&mark[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use wattle_run::ports::model::NoDeltas;

    use super::*;

    /// Returns the text and the reasoning of a text that arrives in chunks of `size` characters.
    fn read_of(model: &str, text: &str, size: usize) -> (String, String) {
        let mut think = Words::of(model).think;
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

    fn check(whole: &str, text: &str, reasoning: &str) {
        for size in [1, 2, 3, 100] {
            let read = read_of("qwen3", whole, size);
            assert_eq!(read, (text.into(), reasoning.into()), "{whole} by {size}");
        }
    }

    #[test]
    fn tags_split_a_text() {
        let cases = [
            ("hello", "hello", ""),
            ("<think>hm</think>\n\nhello", "hello", "hm"),
            ("\n<think>a</thin b</think>x </think>", "x </think>", "a</thin b"),
            ("say <think>no</think>", "say <think>no</think>", ""),
            ("<thin", "<thin", ""),
            ("<think>never ends</", "", "never ends</"),
            ("<think></think>", "", ""),
            ("The user greets me.\n</think>\n\nHello!", "Hello!", "The user greets me.\n"),
            ("So be it.</think>Hello!", "Hello!", "So be it."),
            ("</think>Hello!", "Hello!", ""),
            ("```\na\n```\nIt is `a`.\n</think>\nHello!", "Hello!", "```\na\n```\nIt is `a`.\n"),
            ("a </thin", "a </thin", ""),
            ("", "", ""),
        ];
        for (whole, text, reasoning) in cases {
            check(whole, text, reasoning);
        }
    }

    #[test]
    fn mentioned_closing_tag_is_text() {
        for whole in [
            "close it with `</think>` then",
            "a <think> b </think> c",
            "strip </think> first",
            "the **</think>** mark",
            "the mark (</think>)",
            "write \\</think>",
            "+</think>",
            "It ends with:\n\n```\n</think>\n```\n\nAll that follows is the answer.",
            "````md\n```\na\n```\n</think>\n````\nso",
            "`a.</think>` ends it",
            "{\"note\":\"first.</think>\",\"total\":3}",
            " [\"first.</think>\"]",
        ] {
            check(whole, whole, "");
        }
    }

    #[test]
    fn closing_tag_alone_is_text_for_models_with_separate_reasoning() {
        let whole = "I think.\n</think>\nHello!";
        for (model, is_apart) in [
            ("us.anthropic.claude-opus-5", true),
            ("models/gemini-3-flash", true),
            ("openai/gpt-5", true),
            ("openai/o3-mini", true),
            ("grok-5", true),
            ("qwen3", false),
            ("deepseek-r1:8b", false),
            ("olmo", false),
        ] {
            let text = if is_apart { whole } else { "Hello!" };
            assert_eq!(read_of(model, whole, 3).0, text, "{model}");
            assert_eq!(read_of(model, "<think>hm</think>Hello!", 3).0, "Hello!", "{model}");
        }
    }

    #[test]
    fn leading_white_space_is_bounded() {
        let space = " ".repeat(300);
        check(&format!("{space}<think>a</think>b"), "b", "a");
        check(&format!("{space}b"), &format!("{}b", " ".repeat(LEAD)), "");
        check(&space, &" ".repeat(LEAD), "");
        let sink = Sink::new(&NoDeltas);
        let mut words = Words::of("qwen3");
        for _ in 0..2_000 {
            words.feed(&space, &sink);
        }
        assert_eq!(words.bytes(), 0);
        words.end(&sink);
        assert_eq!(words.bytes(), LEAD);
    }

    #[test]
    fn closing_tag_alone_is_text_if_other_output_followed_the_text() {
        let sink = Sink::new(&NoDeltas);
        for (is_fixed, text, reasoning) in [(false, "Hello!", "hm\n"), (true, "hm\nHello!", "")] {
            let mut words = Words::of("qwen3");
            words.feed("hm\n", &sink);
            if is_fixed {
                words.fix_text();
            }
            words.feed("</think>\n\nHello!", &sink);
            words.end(&sink);
            assert_eq!((words.text.as_str(), words.reasoning.as_str()), (text, reasoning));
        }
    }
}
