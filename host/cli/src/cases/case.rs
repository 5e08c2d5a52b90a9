//! A data set: one case per line.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cases::calls::CallStub;
use crate::cases::file_refs;
use crate::cases::matcher::Matcher;
use crate::cases::pointer::Pointer;
use crate::error::Error;

/// Maximum size of a data set in bytes.
const MAX_DATA_SET_BYTES: u64 = 16 << 20;

/// A case.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) graph: Option<String>,
    pub(crate) input: Value,
    pub(crate) context: Value,
    /// Answers to the interrupts of the run, in order.
    pub(crate) answers: Vec<Value>,
    /// Results of calls of the run.
    pub(crate) calls: Vec<CallStub>,
    pub(crate) expect: Vec<Expectation>,
}

/// The expectation for the value at a pointer.
#[derive(Clone, Debug)]
pub(crate) struct Expectation {
    pub(crate) pointer: Pointer,
    pub(crate) matcher: Matcher,
    /// The matcher as it is written in the data set.
    pub(crate) source: Value,
}

/// A case as it is written in the data set.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    graph: Option<String>,
    input: Value,
    #[serde(default)]
    context: Value,
    #[serde(default)]
    answers: Vec<Value>,
    #[serde(default)]
    calls: Vec<Value>,
    expect: Map<String, Value>,
    #[serde(default, rename = "note")]
    _note: Option<String>,
}

/// Reads a data set. Reports all problems at once.
pub(crate) fn read(file: &Path) -> Result<Vec<Case>, Error> {
    let bytes = std::fs::metadata(file).map_err(Error::file("read", file))?.len();
    if bytes > MAX_DATA_SET_BYTES {
        return Err(Error::Usage {
            message: format!("`{}` has {bytes} bytes, which is too large", file.display()),
            hint: format!("the maximum is {MAX_DATA_SET_BYTES} bytes"),
        });
    }
    let text = std::fs::read_to_string(file).map_err(Error::file("read", file))?;
    let folder = file.parent().map(Path::to_owned).unwrap_or_default();
    parse(&text, &folder).map_err(|problems| Error::Usage {
        message: problems
            .iter()
            .map(|(line, problem)| format!("`{}` line {line}: {problem}", file.display()))
            .collect::<Vec<_>>()
            .join("\n"),
        hint: "each line is a JSON object with `name`, `input` and `expect`".into(),
    })
}

type Problems = Vec<(usize, String)>;

fn parse(text: &str, folder: &Path) -> Result<Vec<Case>, Problems> {
    let mut cases: Vec<Case> = Vec::new();
    let mut problems = Problems::new();
    let mut names = BTreeSet::new();
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        match parse_case(line, folder) {
            Ok(case) if !names.insert(case.name.clone()) => {
                problems.push((number, format!("there is another case `{}`", case.name)));
            }
            Ok(case) => cases.push(case),
            Err(problem) => problems.push((number, problem)),
        }
    }
    if problems.is_empty() && cases.is_empty() {
        problems.push((1, "there is no case".to_owned()));
    }
    if problems.is_empty() { Ok(cases) } else { Err(problems) }
}

fn parse_case(line: &str, folder: &Path) -> Result<Case, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| {
        // The case is a single line. Its line number in the file is reported separately.
        error.to_string().replace(" at line 1 column", " at column")
    })?;
    let Line { name, graph, mut input, context, answers, calls, expect, _note: _ } = line;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(is_name) {
        return Err(format!("`{name}` is not a valid name of a case: use `a-z`, `0-9` and `-`"));
    }
    if expect.is_empty() {
        return Err(format!("case `{name}` has no expectations"));
    }
    file_refs::inline_files(&mut input, folder)?;
    let expectation = |(pointer, source): (String, Value)| {
        let matcher = Matcher::parse(&source).map_err(|why| format!("`{pointer}`: {why}"))?;
        Ok(Expectation { pointer: Pointer::parse(&pointer)?, matcher, source })
    };
    let expect = expect.into_iter().map(expectation).collect::<Result<_, String>>()?;
    let call = |(index, source): (usize, &Value)| {
        CallStub::parse(source).map_err(|why| format!("`calls/{index}`: {why}"))
    };
    let calls = calls.iter().enumerate().map(call).collect::<Result<_, String>>()?;
    Ok(Case { name, graph, input, context, answers, calls, expect })
}

/// Selects the named cases, or all of them.
pub(crate) fn select_cases(mut cases: Vec<Case>, only: &[String]) -> Result<Vec<Case>, Error> {
    if let Some(unknown) = only.iter().find(|name| cases.iter().all(|it| it.name != **name)) {
        let known: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        return Err(Error::NotFound {
            message: format!("there is no case `{unknown}`"),
            hint: format!("the cases are {}", known.join(", ")),
        });
    }
    cases.retain(|case| only.is_empty() || only.contains(&case.name));
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(text: &str) -> String {
        let problems = parse(text, Path::new("/nowhere")).unwrap_err();
        problems.iter().map(|(line, problem)| format!("{line}: {problem}\n")).collect()
    }

    #[test]
    fn each_line_of_a_data_set_is_a_case() {
        let text = "# trades\n\n{\"name\": \"buy-1\", \"graph\": \"G\", \"input\": {\"a\": 1}, \
                    \"answers\": [true], \"expect\": {\"/status\": \"completed\"}, \"note\": \"n\"}\n";
        let cases = parse(text, Path::new("")).unwrap();
        assert_eq!(cases.len(), 1);
        assert_eq!((cases[0].name.as_str(), cases[0].graph.as_deref()), ("buy-1", Some("G")));
        assert_eq!((&cases[0].input, &cases[0].answers), (&json!({"a": 1}), &vec![json!(true)]));
        assert_eq!(cases[0].expect[0].pointer.text(), "/status");
    }

    #[test]
    fn all_problems_are_named_with_their_line() {
        let text = r#"
{"name": "a", "input": {}, "expect": {"/status": "completed"}}
{"name": "a", "input": {}, "expect": {"/status": "completed"}}
{"name": "b", "input": {}, "expects": {}}
{"name": "c", "input": {}, "expect": {}}
{"name": "D d", "input": {}, "expect": {"/status": 1}}
{"name": "e", "input": {}, "expect": {"/rows": 1}}
{"name": "f", "input": {}, "expect": {"/state/a": {"$like": 1}}}
{"name": "g", "input": {"picture": {"$file": "../x.png"}}, "expect": {"/status": 1}}
{"name": "i", "input": {}, "calls": [{"llm": {}}], "expect": {"/status": 1}}
{"name": "h","#;
        insta::assert_snapshot!(problems(text));
        assert_eq!(problems("# nothing\n"), "1: there is no case\n");
    }

    #[test]
    fn cases_are_selected_by_name() {
        let text = "{\"name\": \"a\", \"input\": {}, \"expect\": {\"/status\": 1}}\n\
                    {\"name\": \"b\", \"input\": {}, \"expect\": {\"/status\": 1}}";
        let cases = || parse(text, Path::new("")).unwrap();
        assert_eq!(select_cases(cases(), &[]).unwrap().len(), 2);
        assert_eq!(select_cases(cases(), &["b".into()]).unwrap()[0].name, "b");
        let error = select_cases(cases(), &["c".into()]).unwrap_err().to_string();
        assert!(error.contains("the cases are a, b"), "{error}");
    }
}
