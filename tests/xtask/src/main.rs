//! `cargo xtask`: set-up, demo, tests and checks, on a machine with only Rust, git and a C
//! compiler. Few dependencies on purpose: it is built before anything else.

mod clients;
mod files;
mod guests;
mod pages;
mod peers;
mod python;
mod steps;

use anyhow::{Result, bail};

const HELP: &str = "\
usage: cargo xtask <command>

  demo [--once]   build what is missing, start stand-ins and host, use every application
  test            build what is missing, then format, lints, documentation and every test
  check           format, lints, documentation, spelling and licences
  guests          build the WebAssembly guests and put them into their app folders
  pages           build the pages of the applications (needs Node.js and npm)
  clients         install the clients and servers that tests use (needs npm and Python)
  bench           steps per second in memory and on redb (takes a few minutes)
  bench peer      the same cases on Wattle and on LangGraph (needs Python, npm and PostgreSQL)
  bench load      many streams and runs on a server, and whether an event is lost (a minute)
  bench agent-server
                  the same requests to our server and to that of LangGraph (needs Python)
";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["demo", rest @ ..] => steps::demo(rest),
        ["test"] => steps::test(),
        ["check"] => steps::check(),
        ["guests"] => guests::build(),
        ["pages"] => pages::build().map(drop),
        ["clients"] => clients::install(),
        ["bench", rest @ ..] => steps::bench(rest),
        ["help" | "--help" | "-h"] | [] => {
            steps::say(HELP);
            Ok(())
        }
        [other, ..] => bail!("there is no command `{other}`\n\n{HELP}"),
    }
}
