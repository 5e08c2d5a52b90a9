//! Tests of the splitting of texts.

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
        ("The user greets me. </think> Hello!", "Hello!", "The user greets me. "),
        ("他在问好。 \t</think>你好", "你好", "他在问好。 \t"),
        ("(A joke.)\u{a0}</think>\nHello!", "Hello!", "(A joke.)\u{a0}"),
        (" </think>Hello!", "Hello!", " "),
        ("Is <thinking> meant?\n</think>Yes.", "Yes.", "Is <thinking> meant?\n"),
        ("", "", ""),
    ];
    for (whole, text, reasoning) in cases {
        check(whole, text, reasoning);
    }
}

#[test]
fn each_pair_of_tags_splits_a_text() {
    for Tag { open, close, .. } in &TAGS {
        check(&format!("\n{open}hm{close}\n\nhello"), "hello", "hm");
        check(&format!("{open}hm"), "", "hm");
        check(&format!("hm.\n{close}\nhello"), "hello", "hm.\n");
        check(
            &format!("{open}a{close}\n{open}b{close}hello {open}"),
            &format!("hello {open}"),
            "ab",
        );
        check(&format!("say {open}no{close}"), &format!("say {open}no{close}"), "");
        let half = &open[..open.len() - open.chars().next_back().unwrap().len_utf8()];
        check(half, half, "");
        check(&format!("{open}hm{close}{half}"), half, "hm");
    }
    for (open, close) in [("<think>", "</thinking>"), ("[THINK]", "</think>")] {
        check(&format!("{open}hm{close}hello"), "", &format!("hm{close}hello"));
    }
}

#[test]
fn mentioned_closing_tag_is_text() {
    for whole in [
        "close it with `</think>` then",
        "a <think> b </think> c",
        "strip </think> first",
        "strip\u{3000}</think> first",
        "a list:\n  </think>",
        "see [/THINK] and [1](b)",
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
        let thought = "<thought>hm</thought>Hello!";
        let is_read = !is_apart || model.contains("gemini");
        let text = if is_read { "Hello!" } else { thought };
        assert_eq!(read_of(model, thought, 3).0, text, "{model}");
        let asked = "<thinking>hm</thinking>Hello!";
        let text = if is_apart { asked } else { "Hello!" };
        assert_eq!(read_of(model, asked, 3).0, text, "{model}");
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
