//! The examples of `host/docs/semantics.md`: each is built and run, and its results are compared
//! with the page.

mod act;
mod claim;
mod script;

use std::fs;

use wattle_suite::guests::root;

/// Minimum number of examples on the page. An example that is not found would not be checked.
const EXAMPLES: usize = 35;

/// A graph, and the script of its nodes, commands and results.
struct Example {
    title: String,
    graph: String,
    script: String,
}

/// Returns the examples of the page: each block of `toml` with the block of `text` below it.
fn examples(page: &str) -> Vec<Example> {
    let (mut found, mut title, mut graph) = (Vec::new(), String::new(), None);
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")) {
            heading.clone_into(&mut title);
        }
        let Some(language) = line.strip_prefix("```").filter(|word| !word.is_empty()) else {
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let block = block.join("\n");
        match (language, graph.take()) {
            ("toml", None) => graph = Some(block),
            ("text", Some(graph)) => {
                found.push(Example { title: title.clone(), graph, script: block });
            }
            (other, Some(_)) => panic!("{title}: a graph is followed by `{other}`, not by `text`"),
            _ => {}
        }
    }
    assert!(graph.is_none(), "{title}: the last graph has no script");
    found
}

#[tokio::test]
async fn every_example_of_the_page_has_the_results_of_the_page() {
    let page = fs::read_to_string(root().join("host/docs/semantics.md")).unwrap();
    let examples = examples(&page);
    assert!(examples.len() >= EXAMPLES, "only {} examples were found", examples.len());
    let mut wrong = Vec::new();
    for example in examples {
        let found = script::play(&example.graph, &example.script).await;
        wrong.extend(found.into_iter().map(|what| format!("{}: {what}", example.title)));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_wrong_example_is_detected() {
    let graph = "[graphs.main]\nentry = \"a\"\nchannels.n = {}\nnodes.a = {}";
    let script = |claim: &str| format!("a: writes 1 to n\n\nstart {{}}\n=> {claim}");
    let right = script::play(graph, &script("completed {\"n\": 1}")).await;
    assert!(right.is_empty(), "{right:?}");
    for claim in ["completed {\"n\": 2}", "failed limit", "model calls 1", "stands before a"] {
        assert_eq!(script::play(graph, &script(claim)).await.len(), 1, "{claim}");
    }
}
