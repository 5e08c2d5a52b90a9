//! The input of `wattle dev`, which runs after each change.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wattle_graph::suggest;

use crate::args::DevArgs;
use crate::cases::case::{self, Case};
use crate::command::json_arg;
use crate::error::Error;

/// The file with the cases of an app, relative to its folder.
const CASES_FILE: &str = "tests/cases.jsonl";

/// The source of the input.
pub(super) enum Source {
    /// The argument of `--input`, and the graph.
    Argument { input: String, graph: Option<String> },
    /// A case of the app: the named case, or the first case.
    Case { file: PathBuf, name: Option<String> },
    /// No channel has a value.
    Empty { graph: Option<String> },
}

/// An input, with the graph and the answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Input {
    pub(super) graph: Option<String>,
    pub(super) input: Value,
    pub(super) context: Value,
    /// Answers to the interrupts of the run, in order.
    pub(super) answers: Vec<Value>,
}

impl Source {
    /// Selects the source. Without arguments, the source is the first case of the app, if the app
    /// has cases.
    pub(super) fn new(folder: &Path, args: &DevArgs) -> Result<Self, Error> {
        let (file, graph) = (folder.join(CASES_FILE), args.graph.clone());
        Ok(match (&args.input, &args.case) {
            (Some(input), _) if input == "-" => {
                return Err(Error::Usage {
                    message: "an input from stdin cannot be read again".into(),
                    hint: "write JSON in single quotes, or `@file` for a file".into(),
                });
            }
            (Some(input), _) => Self::Argument { input: input.clone(), graph },
            (None, Some(name)) => Self::Case { file, name: Some(name.clone()) },
            (None, None) if graph.is_none() && file.is_file() => Self::Case { file, name: None },
            (None, None) => Self::Empty { graph },
        })
    }

    /// Returns the folder of the file with the input, which is watched.
    pub(super) fn folder(&self) -> Option<&Path> {
        let file = match self {
            Self::Argument { input, .. } => Path::new(input.strip_prefix('@')?),
            Self::Case { file, .. } => file.as_path(),
            Self::Empty { .. } => return None,
        };
        let folder = file.parent()?;
        Some(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
    }

    /// Reads the input again.
    pub(super) fn read(&self) -> Result<Input, Error> {
        match self {
            Self::Argument { input, graph } => {
                Ok(Input::of(json_arg::parse(input)?, graph.clone()))
            }
            Self::Case { file, name } => {
                let case = select_case(case::read(file)?, name.as_deref())?;
                let Case { graph, input, context, answers, .. } = case;
                Ok(Input { graph, input, context, answers })
            }
            Self::Empty { graph } => Ok(Input::of(json!({}), graph.clone())),
        }
    }
}

impl Input {
    fn of(input: Value, graph: Option<String>) -> Self {
        Self { graph, input, context: Value::Null, answers: Vec::new() }
    }
}

fn select_case(cases: Vec<Case>, name: Option<&str>) -> Result<Case, Error> {
    let names: Vec<String> = cases.iter().map(|case| case.name.clone()).collect();
    let is_wanted = |case: &Case| name.is_none_or(|name| case.name == name);
    cases.into_iter().find(is_wanted).ok_or_else(|| {
        let name = name.unwrap_or_default();
        Error::NotFound {
            message: format!("there is no case `{name}`"),
            hint: suggest::hint(name, "the cases are", names.iter().map(String::as_str)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::AppArg;

    const TWO_CASES: &str = r#"
{"name": "a", "input": {"n": 1}, "answers": [true], "expect": {"/status": "completed"}}
{"name": "b", "graph": "other", "input": {"n": 2}, "expect": {"/status": "completed"}}
"#;

    fn args(case: Option<&str>, input: Option<&str>) -> DevArgs {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        DevArgs { app: AppArg::default(), case: owned(case), input: owned(input), graph: None }
    }

    #[test]
    fn the_input_is_the_argument_or_a_case_or_empty() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let read = |args: &DevArgs| Source::new(folder, args).and_then(|source| source.read());
        assert_eq!(read(&args(None, None)).unwrap().input, json!({}));
        std::fs::create_dir(folder.join("tests")).unwrap();
        std::fs::write(folder.join(CASES_FILE), TWO_CASES).unwrap();
        let first = read(&args(None, None)).unwrap();
        assert_eq!((first.input, first.answers), (json!({ "n": 1 }), vec![json!(true)]));
        assert_eq!(read(&args(Some("b"), None)).unwrap().graph.as_deref(), Some("other"));
        assert_eq!(read(&args(None, Some("{\"n\": 3}"))).unwrap().input, json!({ "n": 3 }));
        let unknown = read(&args(Some("c"), None)).unwrap_err().to_string();
        assert!(unknown.contains("there is no case `c`"), "{unknown}");
        assert!(read(&args(None, Some("-"))).is_err(), "stdin ends");
    }
}
