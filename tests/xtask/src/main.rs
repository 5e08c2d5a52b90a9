//! `cargo xtask`: set-up, demo, tests and checks, on a machine with only Rust, git and a C
//! compiler. Few dependencies on purpose: it is built before anything else.

mod browser;
mod clients;
mod commands;
mod files;
mod fuzz;
mod guests;
mod native;
mod needs;
mod pages;
mod peers;
mod python;
mod quick;
mod shell;
mod step;
mod times;
mod units;

use anyhow::{Result, bail};

const HELP: &str = "\
usage: cargo xtask <command>

  demo [--once]   build what is missing, start stand-ins and host, use every application
  test            build what is missing, then format, lints, documentation, every test
  test --times    the same; also writes into tests/README.md where its time goes
  quick [crate...]
                  format, lint and tests of what changed and of what depends on it, without
                  browsers, clients and data sets
  eval [app...]   the data sets of the applications, also with imprecise models (minutes)
  peers           install large servers and gateways of others, and run the tests that talk to them
                  (needs Python; the first time takes some minutes)
  check           format, lints, documentation, spelling and licences
  fuzz [target...] [--seconds N]
                  hand made-up bytes to what reads foreign ones (needs a C++ compiler)
  guests          build the WebAssembly guests and put them into their app folders
  pages           build the pages of the applications (needs Node.js and npm)
  clients         install the clients and servers that tests use (needs npm and Python)
  needs           print the Debian packages of programs that tests need and the machine lacks
  bench           steps per second in memory and on redb (takes a few minutes)
  bench peer      the same cases on Wattle and on LangGraph (needs Python, npm and PostgreSQL)
  bench load      many streams and runs on a server, and whether an event is lost (a minute)
  bench attack    what others have of a host beside each attack of the suite (six minutes)
  bench agent-server
                  the same requests to our server and to that of LangGraph (needs Python)
";

fn main() -> Result<()> {
    if let Some(status) = fuzz::wrapped() {
        std::process::exit(status?.code().unwrap_or(1));
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = command(&words);
    step::summarize();
    outcome
}

fn command(words: &[&str]) -> Result<()> {
    match words {
        ["demo", rest @ ..] => commands::demo(rest),
        ["test", rest @ ..] => commands::test(rest),
        ["eval", rest @ ..] => commands::eval(rest),
        ["peers"] => commands::peers(),
        ["check"] => commands::check(),
        ["quick", rest @ ..] => quick::quick(rest),
        ["fuzz", rest @ ..] => fuzz::fuzz(rest),
        ["guests"] => guests::build(),
        ["pages"] => pages::build(),
        ["clients"] => clients::install(),
        ["needs"] => {
            show(&needs::packages());
            Ok(())
        }
        ["bench", rest @ ..] => commands::bench(rest),
        ["help" | "--help" | "-h"] | [] => {
            shell::say(HELP);
            Ok(())
        }
        [other, ..] => bail!("there is no command `{other}`\n\n{HELP}"),
    }
}

/// The one result that scripts read.
#[expect(clippy::print_stdout, reason = "the caller reads it")]
fn show(result: &str) {
    println!("{result}");
}
