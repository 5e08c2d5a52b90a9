//! `wattle new`: makes the folder of a new app.

use std::path::Path;

use serde_json::json;

use crate::args::NewArgs;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Output;
use crate::scaffold::files::{self, Kind};
use crate::scaffold::language::Language;

pub(super) fn new(args: &NewArgs, output: Output) -> Result<Exit, Error> {
    let NewArgs { name, lang, kind } = args;
    let files = files::write(Path::new(name), name, *lang, *kind)?;
    let made = json!({ "name": name, "lang": lang, "kind": kind.to_string(), "files": files });
    output.data(&made, |_| next_steps(name, *lang, *kind));
    Ok(Exit::Ok)
}

/// Describes the new app and the next steps for the user.
fn next_steps(name: &str, language: Language, kind: Kind) -> String {
    let needs = match language {
        Language::Rust => "Rust, through rustup",
        Language::Typescript => "Node.js 20.19 or newer, with npm",
        Language::Python | Language::C => "Python 3.11 or newer, with venv",
    };
    let source = match language {
        Language::Rust => "src/lib.rs",
        Language::Typescript => "src/index.ts",
        Language::Python => "src/app.py",
        Language::C => "src/plugin.c",
    };
    let input = match kind {
        Kind::App | Kind::Node => r#"{"name": "Ada"}"#,
        Kind::Tool => r#"{"text": "two words"}"#,
    };
    format!(
        "made `{name}`, whose component is {source}; its build needs {needs}

  cd {name}
  wattle build                      build the component; the first time fetches packages
  wattle run {name} --input '{input}'
  wattle dev                        build and run a case again after each change
  wattle test                       run the cases in `tests`"
    )
}
