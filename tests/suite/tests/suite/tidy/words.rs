//! Tests that words which the glossary has replaced no longer occur in names in code or on pages.
//!
//! A name is an identifier anywhere in code, split at `_` and before capitals: `RunDoc`, `run_doc`
//! and `RUN_DOC` have the same words. Comments, documentation and literals are not names. The prose
//! of a page is its text without code; changelogs are not checked, because they describe the past.
//!
//! A word is added here, in one line, by the commit that renames the last name or phrase with it.

use std::collections::BTreeSet;
use std::fs;

use proc_macro2::{TokenStream, TokenTree};
use wattle_suite::guests::root;

use super::{files, sources};

/// The page that defines the words.
const GLOSSARY: &str = "host/docs/glossary.md";

/// A retired word or several joined by `_`, the word of the glossary that replaces it, and the
/// identifiers of other crates that may contain it.
type Retired = (&'static str, &'static str, &'static [&'static str]);

/// Retired words in names. A word with a final `s` is the same word.
const NAMES: &[Retired] = &[
    ("answer_reuse", "result reuse", &[]),
    ("call_answer", "result", &[]),
    ("child_graph", "subgraph", &[]),
    ("ephemeral_checkpoint", "unpersisted checkpoint", &[]),
    ("free_fact", "metadata", &[]),
    ("held_checkpoint", "unpersisted checkpoint", &[]),
    ("inner_graph", "subgraph", &[]),
    ("list_tail", "list delta", &[]),
    ("log_barrier", "output commit", &[]),
    ("nested_run", "subgraph", &[]),
    ("run_doc", "run specification", &[]),
    ("salvage", "result reuse", &[]),
    ("strand", "subgraph", &[]),
    ("sub_graph", "subgraph", &[]),
    ("take_on", "takeover", &[]),
    ("take_up", "takeover", &[]),
    ("tidings", "webhook", &[]),
    ("turnstile", "thread lock", &[]),
    ("unkept", "unpersisted checkpoint", &[]),
    ("unstored", "unpersisted checkpoint", &[]),
];

/// Beginnings of retired phrases on pages, in lower case, each with the word of the glossary that
/// replaces it.
const PHRASES: &[(&str, &str)] = &[
    ("answer of a model", "completion"),
    ("answered call", "result"),
    ("answers of models", "completion"),
    ("barrier of the log", "output commit"),
    ("free facts", "metadata"),
    ("graph above", "parent graph"),
    ("graphs around", "parent graph"),
    ("journal answers", "result"),
    ("loose plugin", "standalone plugin"),
    ("model task", "structured task"),
    ("model's answer", "completion"),
    ("nested graph", "subgraph"),
    ("salvage", "result reuse"),
    ("sign of life", "heartbeat"),
    ("static interrupt", "breakpoint"),
    ("tool server", "MCP server"),
    ("unkept", "unpersisted checkpoint"),
];

#[test]
fn no_name_has_a_retired_word() {
    let mut wrong = Vec::new();
    for file in ["host", "plugins", "tests"].into_iter().flat_map(sources) {
        let text = fs::read_to_string(&file).unwrap();
        for (name, (word, replacement, _)) in retired_names(&text, NAMES) {
            wrong.push(format!("{}: {name}: {}", file.display(), advice(word, replacement)));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn no_page_has_a_retired_phrase() {
    let folders = ["host", "plugins", "tests"].into_iter().flat_map(|it| files(it, &["md"]));
    let pages = folders.chain(["README.md", "ARCHITECTURE.md"].map(|page| root().join(page)));
    let mut wrong = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for (phrase, replacement) in retired_phrases(&text, PHRASES) {
            wrong.push(format!("{}: {}", page.display(), advice(phrase, replacement)));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_glossary_defines_each_replacement_once() {
    let page = fs::read_to_string(root().join(GLOSSARY)).unwrap();
    let entries = page.lines().filter_map(|line| line.strip_prefix("* **")?.split("**").next());
    let mut defined = BTreeSet::new();
    for word in entries {
        assert!(defined.insert(word), "{GLOSSARY} defines `{word}` twice");
    }
    let names = NAMES.iter().map(|(_, replacement, _)| *replacement);
    for word in names.chain(PHRASES.iter().map(|(_, replacement)| *replacement)) {
        assert!(defined.contains(word), "{GLOSSARY} does not define `{word}`");
    }
}

#[test]
fn a_retired_word_is_found_in_every_kind_of_name() {
    let table: &[Retired] = &[("nested", "subgraph", &["NestedJoin"]), ("run_doc", "run", &[])];
    let found = |text: &str| retired_names(text, table).len();
    for code in [
        "struct NestedGraph;",
        "trait T { type Nested; }",
        "enum Kind { Nested, Flat }",
        "struct Plan { nested: u8 }",
        "const MAX_NESTED: u8 = 8;",
        "mod nested;",
        "fn start_nested() {}",
        "fn start(nested: u8) {}",
        "fn start() { let is_nested = true; }",
        "fn start() { assert!(vec![is_nested].len() == 1); }",
        "struct HTTPNested;",
        "struct RunDoc;",
        "fn list_run_docs() {}",
    ] {
        assert_eq!(found(code), 1, "{code}");
    }
    for code in [
        "// nested\nstruct Plan;",
        "/* nested */ struct Plan;",
        "/// `nested`\nstruct Plan;",
        "//! nested\nstruct Plan;",
        "const NAME: &str = \"nested\";",
        "const NAME: &str = r#\"nested \"run_doc\"\"#;",
        "fn unnested_nest() {}",
        "struct RunOfDoc;",
        "use parser::NestedJoin;",
    ] {
        assert_eq!(found(code), 0, "{code}");
    }
    let both = "struct Nested { run_doc: u8 }";
    let names: Vec<String> = retired_names(both, table).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["Nested", "run_doc"]);
    assert_eq!(
        advice("nested", "subgraph"),
        "`nested` is retired: `subgraph` (host/docs/glossary.md)"
    );
}

#[test]
fn a_retired_phrase_is_found_in_prose_and_not_in_code() {
    let found = |page: &str| retired_phrases(page, &[("nested graph", "subgraph")]).len();
    for page in ["Nested graphs run.", "* a\n  nested\n  graph", "| a | of nested graphs |"] {
        assert_eq!(found(page), 1, "{page}");
    }
    for page in [
        "```toml\nnested graph\n```",
        "the field `nested graph`, and the `nested\ngraph` here",
        "unnested graphs",
        "nested\n\ngraph",
    ] {
        assert_eq!(found(page), 0, "{page}");
    }
    assert_eq!(found("```\ncode\n```\nA nested graph."), 1);
}

fn advice(word: &str, replacement: &str) -> String {
    format!("`{word}` is retired: `{replacement}` ({GLOSSARY})")
}

/// Returns the names of a Rust file that contain retired words, each with its row of the table.
fn retired_names<'t>(text: &str, table: &'t [Retired]) -> Vec<(String, &'t Retired)> {
    // Few files contain these letters, and only those are parsed: parsing all files would take an
    // unoptimized build some seconds.
    let letters = text.to_lowercase().replace('_', "");
    let rows = table.iter().filter(|(word, ..)| letters.contains(&word.replace('_', "")));
    let rows: Vec<&Retired> = rows.collect();
    let mut names = BTreeSet::new();
    if !rows.is_empty() {
        collect_names(text.parse().unwrap(), &mut names);
    }
    let mut found = Vec::new();
    for name in names {
        let is_foreign = |row: &Retired| row.2.contains(&name.as_str());
        let row = rows.iter().find(|row| has_word(&name, row.0) && !is_foreign(row));
        found.extend(row.map(|row| (name, *row)));
    }
    found
}

fn collect_names(tokens: TokenStream, names: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                names.insert(name.to_string());
            }
            TokenTree::Group(group) => collect_names(group.stream(), names),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Returns the words of a name in lower case, joined by `_`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut words = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let is_inside = at > 0 && letters[at - 1] != '_';
        let ends_word = is_inside && !letters[at - 1].is_uppercase();
        let begins_word = is_inside && letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        if letter.is_uppercase() && (ends_word || begins_word) {
            words.push('_');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

fn has_word(name: &str, retired: &str) -> bool {
    let name = format!("_{}_", snake_case(name));
    ["_", "s_"].iter().any(|end| name.contains(&format!("_{retired}{end}")))
}

/// Returns the retired phrases in the prose of a page.
fn retired_phrases<'t>(page: &str, table: &'t [(&'t str, &'t str)]) -> Vec<&'t (&'t str, &'t str)> {
    let paragraphs = prose(page);
    let begins_in = |text: &str, phrase: &str| {
        text.match_indices(phrase).any(|(at, _)| !text[..at].ends_with(char::is_alphanumeric))
    };
    let is_found = |phrase: &str| paragraphs.iter().any(|text| begins_in(text, phrase));
    table.iter().filter(|(phrase, _)| is_found(phrase)).collect()
}

/// Returns the paragraphs of a page, each on one line, in lower case and without code.
fn prose(page: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut is_code = false;
    for line in page.lines().map(str::trim) {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if line.is_empty() {
            paragraphs.push(String::new());
        } else if let Some(paragraph) = paragraphs.last_mut().filter(|_| !is_code) {
            paragraph.push_str(line);
            paragraph.push(' ');
        }
    }
    // Every second part is between backticks.
    let without_code = |text: String| text.split('`').step_by(2).collect::<Vec<_>>().join("`");
    paragraphs.into_iter().map(|text| without_code(text).to_lowercase()).collect()
}
