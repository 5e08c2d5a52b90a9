//! Reasoning that a model writes into its text, between `<think>` and `</think>`.
//!
//! Local servers and gateways in front of them often do not separate this reasoning from the text,
//! in all wire formats. The host splits a text that starts with the opening tag. A tag may be split
//! between chunks.
//!
//! Some services omit the opening tag, because it is part of their prompt. A closing tag alone then
//! means that all text before it was reasoning. This interpretation is a guess, and a wrong guess
//! removes text from a completion. The host makes the guess only where it is likely to be right:
//! not for models whose services separate the reasoning, not in JSON, not within code, and not for
//! a tag that the text mentions.

use crate::sink::CallSink;

/// The opening tag.
const OPEN_TAG: &str = "<think>";

/// The closing tag.
const CLOSE_TAG: &str = "</think>";

/// Maximum characters of leading white space that a text keeps.
const MAX_LEADING_SPACE: usize = 256;

/// Words in the names of models whose services separate the reasoning from the text.
const SEPARATE_REASONING_MODELS: [&str; 4] = ["claude", "gemini", "gpt", "grok"];

/// Characters before a tag that the text mentions: quotes, brackets, marks of Markdown, diffs and
/// programs, and white space. After one of these characters, a closing tag is not the end of
/// reasoning, because reasoning ends with a word or with a line break.
const MENTION_CHARS: [char; 26] = [
    '`', '"', '\'', '“', '‘', '„', '「', '『', '«', '(', '（', '[', '{', '}', '<', '>', '*', '_',
    '\\', '/', '|', '=', '+', '-', ' ', '\t',
];

/// The text and the reasoning of a response so far. Each delta is emitted as it arrives.
#[derive(Debug, Default)]
pub(super) struct StreamedText {
    pub(super) text: String,
    pub(super) reasoning: String,
    parser: ThinkTagParser,
    /// Whether other output was emitted after the text. A restart would also discard that output.
    is_fixed: bool,
}

impl StreamedText {
    /// Creates an empty text for a response of `model`. The name of the model decides whether a
    /// closing tag without an opening tag may end reasoning.
    pub(super) fn for_model(model: &str) -> Self {
        let (held, guesses) = (String::new(), !separates_reasoning(model));
        Self { parser: ThinkTagParser::Start { held, guesses }, ..Self::default() }
    }

    /// Creates an empty text in which tags have no meaning.
    pub(super) fn with_literal_tags() -> Self {
        Self::default()
    }

    /// Returns the number of bytes of text and reasoning so far.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.reasoning.len()
    }

    /// Appends text that may contain reasoning within tags.
    pub(super) fn push_text(&mut self, piece: &str, sink: &CallSink<'_>) {
        for piece in self.parser.feed(piece) {
            self.emit(piece, sink);
        }
    }

    /// Appends text in which tags are text.
    pub(super) fn push_plain_text(&mut self, piece: &str, sink: &CallSink<'_>) {
        if !piece.is_empty() {
            self.flush(sink);
            self.emit(Segment::Text(piece.to_owned()), sink);
        }
    }

    /// Appends reasoning. From now on tags are text, because a service that separates the reasoning
    /// leaves no tags in the text.
    pub(super) fn push_reasoning(&mut self, piece: &str, sink: &CallSink<'_>) {
        if !piece.is_empty() {
            self.flush(sink);
            self.emit(Segment::Reasoning(piece.to_owned()), sink);
        }
    }

    /// Ensures that the text emitted so far does not become reasoning later.
    pub(super) fn fix_text(&mut self) {
        self.is_fixed = true;
    }

    /// Handles the start of another part of the response. From now on a closing tag counts only if
    /// reasoning is open.
    pub(super) fn start_next_part(&mut self, sink: &CallSink<'_>) {
        if !matches!(self.parser, ThinkTagParser::Inside(_)) {
            self.flush(sink);
        }
    }

    /// Emits the text that was held back as a possible tag. From now on tags are text.
    pub(super) fn flush(&mut self, sink: &CallSink<'_>) {
        if let Some(piece) = self.parser.flush() {
            self.emit(piece, sink);
        }
    }

    fn emit(&mut self, piece: Segment, sink: &CallSink<'_>) {
        match piece {
            Segment::Reasoning(text) => {
                sink.emit_reasoning(&text);
                self.reasoning.push_str(&text);
            }
            Segment::Closing(text) if !self.is_fixed => {
                // The text was already emitted; the `restart` discards it.
                let said = std::mem::take(&mut self.text);
                sink.restart();
                self.emit(Segment::Reasoning(said + &text), sink);
            }
            Segment::Text(text) | Segment::Closing(text) => {
                sink.emit_text(&text);
                self.text.push_str(&text);
            }
        }
    }
}

/// A piece of a split text.
#[derive(Debug, PartialEq, Eq)]
enum Segment {
    Text(String),
    Reasoning(String),
    /// This text and all text before it is reasoning.
    Closing(String),
}

/// The state of the parser that splits a text.
#[derive(Debug, Default)]
enum ThinkTagParser {
    /// At the start: only white space and possibly a part of the opening tag have arrived.
    Start {
        /// The text so far.
        held: String,
        /// Whether a closing tag without an opening tag counts.
        guesses: bool,
    },
    /// In reasoning; holds a possible start of the closing tag.
    Inside(String),
    /// After the closing tag, where white space is dropped.
    Closed,
    /// In text that a closing tag may turn into reasoning.
    Unopened(UnopenedText),
    /// In text that stays text.
    #[default]
    Outside,
}

impl ThinkTagParser {
    /// Appends a chunk. Returns its parts.
    fn feed(&mut self, piece: &str) -> Vec<Segment> {
        let mut pieces = Vec::new();
        let mut rest = piece.to_owned();
        while !rest.is_empty() {
            (*self, rest) = std::mem::take(self).step(rest, &mut pieces);
        }
        pieces
    }

    /// Returns the text that is held back, at the end of the response.
    fn flush(&mut self) -> Option<Segment> {
        match std::mem::take(self) {
            Self::Start { held, .. } | Self::Unopened(UnopenedText { held, .. })
                if !held.is_empty() =>
            {
                Some(Segment::Text(held))
            }
            Self::Inside(held) if !held.is_empty() => Some(Segment::Reasoning(held)),
            _ => None,
        }
    }

    /// Moves to the next state. Returns the state and the rest of the chunk.
    fn step(self, rest: String, pieces: &mut Vec<Segment>) -> (Self, String) {
        match self {
            Self::Start { held, guesses } => start_state(&(held + &rest), guesses),
            Self::Unopened(unopened) => unopened.step(rest, pieces),
            Self::Inside(held) => {
                let all = held + &rest;
                if let Some((reasoning, after)) = all.split_once(CLOSE_TAG) {
                    push_nonempty(pieces, Segment::Reasoning(reasoning.to_owned()));
                    return (Self::Closed, after.to_owned());
                }
                let (sure, held) = all.split_at(all.len() - partial_tag_len(&all, CLOSE_TAG));
                push_nonempty(pieces, Segment::Reasoning(sure.to_owned()));
                (Self::Inside(held.to_owned()), String::new())
            }
            Self::Closed => match rest.trim_start() {
                "" => (Self::Closed, String::new()),
                text => (Self::Outside, text.to_owned()),
            },
            Self::Outside => {
                push_nonempty(pieces, Segment::Text(rest));
                (Self::Outside, String::new())
            }
        }
    }
}

/// Decides the state after the first characters of a text. At most as much white space is held back
/// as a text keeps, so that each chunk is read once.
fn start_state(all: &str, guesses: bool) -> (ThinkTagParser, String) {
    let begins = all.trim_start();
    if let Some(inside) = begins.strip_prefix(OPEN_TAG) {
        return (ThinkTagParser::Inside(String::new()), inside.to_owned());
    }
    let lead = &all[..all.len() - begins.len()];
    let lead = lead.char_indices().nth(MAX_LEADING_SPACE).map_or(lead, |(end, _)| &lead[..end]);
    let text = format!("{lead}{begins}");
    if OPEN_TAG.starts_with(begins) {
        return (ThinkTagParser::Start { held: text, guesses }, String::new());
    }
    // A text that starts with JSON has no reasoning before it.
    let think = if guesses && !begins.starts_with(['{', '[']) {
        ThinkTagParser::Unopened(UnopenedText::default())
    } else {
        ThinkTagParser::Outside
    };
    (think, text)
}

/// A text that did not start with the opening tag.
#[derive(Debug, Default)]
struct UnopenedText {
    /// A possible start of a tag.
    held: String,
    /// The character before `held`.
    before: Option<char>,
    code: CodeTracker,
}

impl UnopenedText {
    fn step(mut self, rest: String, pieces: &mut Vec<Segment>) -> (ThinkTagParser, String) {
        let all = if self.held.is_empty() { rest } else { std::mem::take(&mut self.held) + &rest };
        // Most chunks contain no tag and no start of one. Tags are searched for only in the others.
        if !all.contains('<') {
            self.observe(&all);
            pieces.push(Segment::Text(all));
            return (ThinkTagParser::Unopened(self), String::new());
        }
        let close = all.find(CLOSE_TAG);
        if all.find(OPEN_TAG).is_some_and(|open| close.is_none_or(|close| open < close)) {
            return (ThinkTagParser::Outside, all);
        }
        if let Some(close) = close {
            let (before, mark) = all.split_at(close);
            self.observe(before);
            if self.is_mention() {
                return (ThinkTagParser::Outside, all);
            }
            pieces.push(Segment::Closing(before.to_owned()));
            return (ThinkTagParser::Closed, mark[CLOSE_TAG.len()..].to_owned());
        }
        let held = partial_tag_len(&all, CLOSE_TAG).max(partial_tag_len(&all, OPEN_TAG));
        let (sure, held) = all.split_at(all.len() - held);
        self.observe(sure);
        push_nonempty(pieces, Segment::Text(sure.to_owned()));
        held.clone_into(&mut self.held);
        (ThinkTagParser::Unopened(self), String::new())
    }

    fn observe(&mut self, text: &str) {
        self.code.observe(text);
        self.before = text.chars().next_back().or(self.before);
    }

    /// Returns whether the text only mentions the tag at this position, so that it does not count
    /// as a tag.
    fn is_mention(&mut self) -> bool {
        self.code.is_open() || self.before.is_some_and(|sign| MENTION_CHARS.contains(&sign))
    }
}

/// Tracks whether the end of a text is within code in Markdown.
#[derive(Debug, Default)]
struct CodeTracker {
    /// The number of consecutive backticks at the end of the text.
    ticks: usize,
    /// The length of the fence that opened a code block; 0 outside of a code block.
    fence: usize,
    /// Whether the text so far ends within inline code.
    in_line: bool,
}

impl CodeTracker {
    fn observe(&mut self, text: &str) {
        if !text.is_empty() && !text.contains('`') {
            self.end_backticks();
            self.in_line &= !text.contains('\n');
            return;
        }
        for sign in text.chars() {
            if sign == '`' {
                self.ticks += 1;
                continue;
            }
            self.end_backticks();
            self.in_line &= sign != '\n';
        }
    }

    fn is_open(&mut self) -> bool {
        self.end_backticks();
        self.fence > 0 || self.in_line
    }

    /// Handles the end of consecutive backticks.
    fn end_backticks(&mut self) {
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
fn separates_reasoning(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    let name = model.rsplit('/').next().unwrap_or_default();
    // Names such as OpenAI's `o3`.
    let is_numbered =
        name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()));
    is_numbered || SEPARATE_REASONING_MODELS.iter().any(|word| model.contains(word))
}

fn push_nonempty(pieces: &mut Vec<Segment>, piece: Segment) {
    let is_empty = match &piece {
        Segment::Text(text) | Segment::Reasoning(text) => text.is_empty(),
        Segment::Closing(_) => false,
    };
    if !is_empty {
        pieces.push(piece);
    }
}

/// Returns the length of the longest suffix of a text that is a prefix of a tag.
fn partial_tag_len(text: &str, mark: &str) -> usize {
    (1..mark.len()).rev().find(|length| text.ends_with(&mark[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use wattle_run::ports::model::DiscardDeltas;

    use super::*;

    /// Returns the text and the reasoning of a text that arrives in chunks of `size` characters.
    fn read_of(model: &str, text: &str, size: usize) -> (String, String) {
        let mut think = StreamedText::for_model(model).parser;
        let letters: Vec<char> = text.chars().collect();
        let mut pieces: Vec<Segment> = letters
            .chunks(size)
            .flat_map(|piece| think.feed(&piece.iter().collect::<String>()))
            .collect();
        pieces.extend(think.flush());
        let mut read = (String::new(), String::new());
        for piece in pieces {
            match piece {
                Segment::Text(text) => read.0.push_str(&text),
                Segment::Reasoning(text) => read.1.push_str(&text),
                Segment::Closing(text) => {
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
        check(&format!("{space}b"), &format!("{}b", " ".repeat(MAX_LEADING_SPACE)), "");
        check(&space, &" ".repeat(MAX_LEADING_SPACE), "");
        let sink = CallSink::new(&DiscardDeltas);
        let mut words = StreamedText::for_model("qwen3");
        for _ in 0..2_000 {
            words.push_text(&space, &sink);
        }
        assert_eq!(words.bytes(), 0);
        words.flush(&sink);
        assert_eq!(words.bytes(), MAX_LEADING_SPACE);
    }

    #[test]
    fn closing_tag_alone_is_text_if_other_output_followed_the_text() {
        let sink = CallSink::new(&DiscardDeltas);
        for (is_fixed, text, reasoning) in [(false, "Hello!", "hm\n"), (true, "hm\nHello!", "")] {
            let mut words = StreamedText::for_model("qwen3");
            words.push_text("hm\n", &sink);
            if is_fixed {
                words.fix_text();
            }
            words.push_text("</think>\n\nHello!", &sink);
            words.flush(&sink);
            assert_eq!((words.text.as_str(), words.reasoning.as_str()), (text, reasoning));
        }
    }
}
