//! `cargo xtask`: setup, demo, tests and checks, on a machine with only Rust, git and a C compiler.
//! It has few dependencies, because it is built before anything else.

mod browser;
mod c_sdk;
mod clients;
mod commands;
mod files;
mod fuzz;
mod guests;
mod native;
mod needs;
mod new_apps;
mod pages;
mod peers;
mod python;
mod python_sdk;
mod quick;
mod shell;
mod step;
mod times;
mod toolchains;
mod units;

use anyhow::{Result, bail};

const HELP: &str = "\
usage: cargo xtask <command>

  demo [--once]   build what is missing, start stand-ins and host, use every application
  test            build what is missing, then format, lints, documentation, every test
  test --times    the same, and write a table of the times into tests/README.md
  quick [crate...]
                  format, lint and tests of changed crates and their dependents, without
                  browsers, clients and data sets
  eval [app...]   the data sets of the applications, also with imprecise models (minutes)
  peers           install large third-party servers and gateways, and run the tests with them;
                  make, build and test a new app in each language, with packages from the
                  registries (needs npm and Python; takes some minutes)
  check           format, lints, documentation, spelling and licenses
  fuzz [target...] [--seconds N]
                  fuzz the parsers of untrusted bytes with libFuzzer (needs a C++ compiler)
  attack [case...] [--seconds N]
                  attack a real host in each way that the suite knows, with other callers beside
                  it; fails if a limit does not hold or a goal is missed (seven minutes)
  guests          build the WebAssembly guests and copy them to their app folders
  pages           build the studio and the pages of the applications (needs Node.js and npm)
  clients         install the clients, servers and toolchains that tests use, and build the guests
                  of these toolchains (needs npm and Python)
  bindings        generate the bindings of the C SDK from the contract
  needs           print the Debian packages of programs that tests need and the machine lacks
  bench           steps per second in memory and on redb (takes a few minutes)
  bench peer      the same cases on Wattle and on LangGraph (needs Python, npm and PostgreSQL)
  bench load      many streams and runs on a server, and a check for lost events (a minute)
  bench agent-server
                  the same requests to Wattle and to the LangGraph server (needs Python)
  bench hosts     three hosts on one database, one of which is killed (needs PostgreSQL)
  bench studio    requests of the studio to a host with 100,000 threads (some minutes)
  bench turns     a conversation of 400 turns on one thread of an agent (some minutes)
  bench date      latency of the date tool of the application `expense`
  bench model     latency of model calls, compared with plain HTTP requests
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
        ["attack", rest @ ..] => commands::attack(rest),
        ["guests"] => guests::build(),
        ["pages"] => pages::build(),
        ["clients"] => commands::clients(),
        ["bindings"] => c_sdk::generate_bindings(),
        ["needs"] => {
            show(&needs::packages());
            Ok(())
        }
        ["bench", rest @ ..] => commands::bench(rest),
        ["help" | "--help" | "-h"] | [] => {
            shell::say(HELP);
            Ok(())
        }
        [other, ..] => bail!("unknown command `{other}`\n\n{HELP}"),
    }
}

/// Prints the result that scripts read.
#[expect(clippy::print_stdout, reason = "scripts read the result from standard output")]
fn show(result: &str) {
    println!("{result}");
}
