//! Reasoning that a model writes into its text, between tags such as `<think>` and `</think>`.
//!
//! Local servers and gateways in front of them often do not separate this reasoning from the text,
//! in all wire formats. The host splits a text that starts with an opening tag. A tag may be split
//! between chunks, and further reasoning may follow the closing tag.
//!
//! Some services omit the opening tag, because it is part of their prompt. A closing tag alone then
//! means that all text before it was reasoning. This interpretation is a guess, and a wrong guess
//! removes text from a completion. The host makes the guess only where it is likely to be right:
//! not for models whose services separate the reasoning, not in JSON, not within code, and not for
//! a tag that the text mentions.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use crate::sink::CallSink;

/// A pair of tags around reasoning.
#[derive(Debug)]
struct Tag {
    open: &'static str,
    close: &'static str,
    readers: Readers,
}

/// The models for which a pair of tags is read. Prompts ask models for sections with the names of
/// most pairs, so few pairs are read for models whose services separate the reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readers {
    All,
    /// Gemini, and models whose services do not separate the reasoning.
    Gemini,
    /// Models whose services do not separate the reasoning.
    Unseparated,
}

impl Tag {
    const fn new(open: &'static str, close: &'static str) -> Self {
        Self::of(Readers::Unseparated, open, close)
    }

    const fn of(readers: Readers, open: &'static str, close: &'static str) -> Self {
        Self { open, close, readers }
    }

    fn is_read_for(&self, model: ModelKind) -> bool {
        match self.readers {
            Readers::All => true,
            Readers::Gemini => model != ModelKind::Separated,
            Readers::Unseparated => model == ModelKind::Unseparated,
        }
    }
}

/// What the name of a model says about its reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelKind {
    /// Its services may leave the reasoning in the text.
    Unseparated,
    /// A model whose services separate the reasoning, except for Google's endpoint for OpenAI's
    /// format.
    Gemini,
    /// Its services separate the reasoning.
    Separated,
}

/// The number of pairs.
const TAG_COUNT: usize = 9;

/// The pairs of tags.
static TAGS: [Tag; TAG_COUNT] = [
    Tag::of(Readers::All, "<think>", "</think>"),
    // Google's endpoint for OpenAI's format, if it is asked for reasoning.
    Tag::of(Readers::Gemini, "<thought>", "</thought>"),
    Tag::new("<thinking>", "</thinking>"),
    Tag::new("<reasoning>", "</reasoning>"),
    // Models of ByteDance, Meituan, Mistral, Moonshot and Cohere.
    Tag::new("<seed:think>", "</seed:think>"),
    Tag::new("<longcat_think>", "</longcat_think>"),
    Tag::new("[THINK]", "[/THINK]"),
    Tag::new("\u{25c1}think\u{25b7}", "\u{25c1}/think\u{25b7}"),
    Tag::new("<|START_THINKING|>", "<|END_THINKING|>"),
];

/// The first characters of the tags that are ASCII.
const ASCII_TAG_STARTS: [u8; 2] = [b'<', b'['];

/// The first character of the other tags.
const TAG_START: char = '\u{25c1}';

/// Maximum characters of leading white space that a text keeps.
const MAX_LEADING_SPACE: usize = 256;

/// Words in the names of models whose services separate the reasoning from the text, in addition to
/// Gemini.
const SEPARATE_REASONING_MODELS: [&str; 3] = ["claude", "gpt", "grok"];

/// Characters before a tag that the text mentions: quotes, brackets, and marks of Markdown, diffs
/// and programs. After one of these characters, a closing tag is not the end of reasoning, because
/// reasoning ends with a word or with a line break.
const MENTION_CHARS: [char; 24] = [
    '`', '"', '\'', '“', '‘', '„', '「', '『', '«', '(', '（', '[', '{', '}', '<', '>', '*', '_',
    '\\', '/', '|', '=', '+', '-',
];

/// Spaces before a tag. A closing tag after a space is the end of reasoning only if a character of
/// [`SENTENCE_ENDS`] is before the space.
const SPACES: [char; 4] = [' ', '\t', '\u{a0}', '\u{3000}'];

/// Characters at the end of a sentence.
const SENTENCE_ENDS: [char; 9] = ['.', '!', '?', '…', '。', '！', '？', ')', '）'];

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
        let state = State::Start(ModelKind::of(model));
        Self { parser: ThinkTagParser { state, ..ThinkTagParser::default() }, ..Self::default() }
    }

    /// Creates an empty text in which tags have no meaning.
    pub(super) fn with_literal_tags() -> Self {
        Self::default()
    }

    /// Returns the number of bytes of text and reasoning so far.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.reasoning.len()
    }

    /// Returns the opening and the closing tag around the reasoning in the text; `None` if the text
    /// had no reasoning. The opening tag is empty if the text had only the closing tag.
    pub(super) fn tags(&self) -> Option<[&'static str; 2]> {
        self.parser.tags
    }

    /// Emits all text and reasoning so far, after a restart.
    pub(super) fn emit_again(&self, sink: &CallSink<'_>) {
        sink.emit_reasoning(&self.reasoning);
        sink.emit_text(&self.text);
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

    /// Ends the text so far, if there is any: it does not become reasoning later, and further tags
    /// are text.
    pub(super) fn end_text(&mut self, sink: &CallSink<'_>) {
        if !self.text.is_empty() {
            self.flush(sink);
        }
    }

    /// Handles the start of another part of the response. From now on a closing tag counts only if
    /// reasoning is open.
    pub(super) fn start_next_part(&mut self, sink: &CallSink<'_>) {
        if !matches!(self.parser.state, State::Inside(_)) {
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

/// The parser that splits a text.
#[derive(Debug, Default)]
struct ThinkTagParser {
    state: State,
    /// The end of the text so far: a possible start of a tag, or white space before one.
    held: String,
    /// The opening and the closing tag of the last reasoning.
    tags: Option<[&'static str; 2]>,
}

/// What the parser has read.
#[derive(Debug, Default)]
enum State {
    /// Only white space, of a model that decides which pairs count, and whether a closing tag
    /// without an opening tag does.
    Start(ModelKind),
    /// The opening tag of a pair, and reasoning after it.
    Inside(&'static Tag),
    /// The closing tag of a pair, after which white space is dropped.
    Closed(&'static Tag),
    /// Text that a closing tag may turn into reasoning.
    Unopened(UnopenedText),
    /// Text that stays text.
    #[default]
    Outside,
}

/// The text after a step of the parser.
enum Rest<'t> {
    /// The next step reads this text.
    Next(&'t str),
    /// This text, up to the end of the chunk, is held back.
    Held(&'t str),
}

impl ThinkTagParser {
    /// Appends a chunk. Returns its parts.
    fn feed(&mut self, piece: &str) -> Vec<Segment> {
        let mut pieces = Vec::new();
        let all = if self.held.is_empty() {
            Cow::Borrowed(piece)
        } else {
            Cow::Owned(std::mem::take(&mut self.held) + piece)
        };
        let mut rest: &str = &all;
        while !rest.is_empty() {
            let (state, next) = std::mem::take(&mut self.state).step(rest, &mut pieces);
            self.state = state;
            match self.state {
                State::Inside(tag) => self.tags = Some([tag.open, tag.close]),
                State::Closed(tag) if self.tags.is_none() => self.tags = Some(["", tag.close]),
                _ => {}
            }
            match next {
                Rest::Next(text) => rest = text,
                Rest::Held(text) => {
                    text.clone_into(&mut self.held);
                    break;
                }
            }
        }
        pieces
    }

    /// Returns the text that is held back, at the end of the response.
    fn flush(&mut self) -> Option<Segment> {
        let (state, held) = (std::mem::take(&mut self.state), std::mem::take(&mut self.held));
        match state {
            _ if held.is_empty() => None,
            State::Inside(_) => Some(Segment::Reasoning(held)),
            _ => Some(Segment::Text(held)),
        }
    }
}

impl State {
    /// Reads a part of a text. Returns the next state and the rest of the text.
    fn step<'t>(self, text: &'t str, pieces: &mut Vec<Segment>) -> (Self, Rest<'t>) {
        match self {
            Self::Start(model) => start_state(text, model),
            Self::Unopened(unopened) => unopened.step(text, pieces),
            Self::Inside(tag) => {
                if let Some((reasoning, after)) = text.split_once(tag.close) {
                    push_nonempty(pieces, Segment::Reasoning(reasoning.to_owned()));
                    return (Self::Closed(tag), Rest::Next(after));
                }
                let (sure, held) = text.split_at(text.len() - partial_tag_len(text, tag.close));
                push_nonempty(pieces, Segment::Reasoning(sure.to_owned()));
                (Self::Inside(tag), Rest::Held(held))
            }
            Self::Closed(tag) => {
                let text = text.trim_start();
                if let Some(inside) = text.strip_prefix(tag.open) {
                    (Self::Inside(tag), Rest::Next(inside))
                } else if tag.open.starts_with(text) {
                    (Self::Closed(tag), Rest::Held(text))
                } else {
                    (Self::Outside, Rest::Next(text))
                }
            }
            Self::Outside => {
                push_nonempty(pieces, Segment::Text(text.to_owned()));
                (Self::Outside, Rest::Next(""))
            }
        }
    }
}

/// Decides the state after the first characters of a text. At most as much white space is held back
/// as a text keeps, so that each chunk is read once.
fn start_state(text: &str, model: ModelKind) -> (State, Rest<'_>) {
    let begins = text.trim_start();
    let tags = || TAGS.iter().filter(move |tag| tag.is_read_for(model));
    let opened = tags().find_map(|tag| Some((tag, begins.strip_prefix(tag.open)?)));
    if let Some((tag, inside)) = opened {
        return (State::Inside(tag), Rest::Next(inside));
    }
    let space = &text[..text.len() - begins.len()];
    let kept = space.char_indices().rev().nth(MAX_LEADING_SPACE - 1);
    let text = &text[kept.map_or(0, |(start, _)| start)..];
    if tags().any(|tag| tag.open.starts_with(begins)) {
        return (State::Start(model), Rest::Held(text));
    }
    // A text that starts with JSON has no reasoning before it.
    let state = if model == ModelKind::Unseparated && !begins.starts_with(['{', '[']) {
        State::Unopened(UnopenedText::default())
    } else {
        State::Outside
    };
    (state, Rest::Next(text))
}

/// Returns whether a text contains the first character of a tag.
fn has_tag_start(text: &str) -> bool {
    let [one, other] = ASCII_TAG_STARTS;
    memchr2(one, other, text.as_bytes()).is_some() || text.contains(TAG_START)
}

/// A text that did not start with an opening tag.
#[derive(Debug, Default)]
struct UnopenedText {
    /// The last character that is no space.
    last: Option<char>,
    /// Whether spaces follow that character.
    is_spaced: bool,
    code: CodeTracker,
    /// The pairs of [`TAGS`] whose opening tag is in the text. Their tags are text.
    is_opened: [bool; TAG_COUNT],
}

impl UnopenedText {
    fn step<'t>(mut self, text: &'t str, pieces: &mut Vec<Segment>) -> (State, Rest<'t>) {
        // Most chunks contain no tag and no start of one. Tags are searched for only in the others.
        if !has_tag_start(text) {
            self.observe(text);
            pieces.push(Segment::Text(text.to_owned()));
            return (State::Unopened(self), Rest::Next(""));
        }
        let Some((start, index, closes)) = self.find_tag(text) else {
            let tags = self.unopened_tags().flat_map(|(_, tag)| [tag.open, tag.close]);
            let held = tags.map(|tag| partial_tag_len(text, tag)).max().unwrap_or(0);
            let (sure, held) = text.split_at(text.len() - held);
            self.observe(sure);
            push_nonempty(pieces, Segment::Text(sure.to_owned()));
            return (State::Unopened(self), Rest::Held(held));
        };
        let tag = &TAGS[index];
        if !closes {
            let (opened, rest) = text.split_at(start + tag.open.len());
            self.observe(opened);
            self.is_opened[index] = true;
            pieces.push(Segment::Text(opened.to_owned()));
            return (State::Unopened(self), Rest::Next(rest));
        }
        let (before, rest) = text.split_at(start);
        self.observe(before);
        if self.is_mention() {
            return (State::Outside, Rest::Next(text));
        }
        pieces.push(Segment::Closing(before.to_owned()));
        (State::Closed(tag), Rest::Next(&rest[tag.close.len()..]))
    }

    /// Returns the first tag in a text: its position, the index of its pair, and whether it closes.
    /// Each opening tag is found once, which bounds the number of searches.
    fn find_tag(&self, text: &str) -> Option<(usize, usize, bool)> {
        let tags = self
            .unopened_tags()
            .flat_map(|(index, tag)| [(index, tag.open, false), (index, tag.close, true)]);
        let found = tags.filter_map(|(index, tag, closes)| Some((text.find(tag)?, index, closes)));
        found.min()
    }

    fn unopened_tags(&self) -> impl Iterator<Item = (usize, &'static Tag)> {
        TAGS.iter().enumerate().filter(move |(index, _)| !self.is_opened[*index])
    }

    fn observe(&mut self, text: &str) {
        self.code.observe(text);
        let said = text.trim_end_matches(SPACES);
        if let Some(last) = said.chars().next_back() {
            self.last = Some(last);
            self.is_spaced = false;
        }
        self.is_spaced |= said.len() < text.len();
    }

    /// Returns whether the text only mentions the tag at this position, so that it does not count
    /// as a tag.
    fn is_mention(&mut self) -> bool {
        self.code.is_open()
            || self.last.is_some_and(|last| {
                if self.is_spaced {
                    !SENTENCE_ENDS.contains(&last)
                } else {
                    MENTION_CHARS.contains(&last)
                }
            })
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
        let has = |sign: u8| memchr(sign, text.as_bytes()).is_some();
        if !text.is_empty() && !has(b'`') {
            self.end_backticks();
            self.in_line &= !has(b'\n');
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

impl ModelKind {
    fn of(model: &str) -> Self {
        let model = model.to_ascii_lowercase();
        let name = model.rsplit('/').next().unwrap_or_default();
        // Names such as OpenAI's `o3`.
        let is_numbered = name
            .strip_prefix('o')
            .is_some_and(|rest| rest.starts_with(|it: char| it.is_ascii_digit()));
        if model.contains("gemini") {
            Self::Gemini
        } else if is_numbered || SEPARATE_REASONING_MODELS.iter().any(|word| model.contains(word)) {
            Self::Separated
        } else {
            Self::Unseparated
        }
    }
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
fn partial_tag_len(text: &str, tag: &str) -> usize {
    let mut lengths = tag.char_indices().map(|(length, _)| length).rev();
    lengths.find(|length| text.ends_with(&tag[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests;
