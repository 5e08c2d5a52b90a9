//! The attacks of the suite on a host of its own process: what honest callers, the health endpoint,
//! memory and a stop cost meanwhile.

mod measure;
mod start;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::runtime::Builder;
use wattle_suite::attack::{CASES, Case, case};

use crate::print_line;

/// What an honest caller must keep of its throughput.
const LEAST_RATIO: f64 = 0.5;

/// The longest that the health endpoint may take.
const LONGEST_OK: Duration = Duration::from_secs(1);

/// The longest that a stop may take.
const LONGEST_STOP: Duration = Duration::from_secs(25);

/// How much later a host with many threads, or a poisoned store, may answer.
const LATER_START: Duration = Duration::from_secs(1);

/// What is to be done, as the command line says it.
struct Options {
    seconds: f64,
    cases: Vec<Case>,
    binary: PathBuf,
}

impl Options {
    fn read(words: &[&str]) -> Result<Self> {
        let binary = std::env::current_exe()?.with_file_name("wattle");
        let mut options = Self { seconds: 5.0, cases: Vec::new(), binary };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--seconds" => {
                    let value = words.next().context("`--seconds` needs a value")?;
                    options.seconds = value.parse().context("`--seconds` needs a number")?;
                }
                name => match case(name) {
                    Some(case) => options.cases.push(case),
                    None => bail!("there is no attack `{name}`; there are {}", names()),
                },
            }
        }
        if options.cases.is_empty() {
            options.cases = CASES.to_vec();
        }
        let shown = options.binary.display();
        ensure!(options.binary.is_file(), "{shown} is missing; run `cargo xtask bench`");
        Ok(options)
    }
}

fn names() -> String {
    CASES.iter().map(|case| case.name).collect::<Vec<_>>().join(", ")
}

/// Does it, and prints what came of it.
///
/// # Errors
///
/// If a limit did not hold, or a figure is beyond its goal.
pub(crate) fn table(words: &[&str]) -> Result<()> {
    let options = Options::read(words)?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let beyond = runtime.block_on(runtime.spawn(all(options)))??;
    ensure!(beyond.is_empty(), "beyond the goals: {}", beyond.join(", "));
    Ok(())
}

/// Answers what was beyond its goals.
async fn all(Options { seconds, cases, binary }: Options) -> Result<Vec<&'static str>> {
    let time = Duration::from_secs_f64(seconds);
    print_row(&["attack", "alone", "beside", "ratio", "/ok ms", "MB", "stop s", "strikes", ""]);
    let mut beyond = Vec::new();
    for case in cases {
        let row = measure::of(case, &binary, time).await;
        let row = row.with_context(|| format!("attack `{}`", case.name))?;
        let mut wrong = Vec::new();
        let ratio = row.beside / row.alone;
        if ratio < LEAST_RATIO {
            wrong.push("throughput");
        }
        if row.longest_ok > LONGEST_OK {
            wrong.push("/ok");
        }
        if row.stop > LONGEST_STOP {
            wrong.push("stop");
        }
        print_row(&[
            case.name,
            &format!("{:.1}", row.alone),
            &format!("{:.1}", row.beside),
            &format!("{ratio:.2}"),
            &format!("{:.0}", row.longest_ok.as_secs_f64() * 1e3),
            &format!("{:.0}", row.peak_rss_bytes as f64 / 1e6),
            &format!("{:.1}", row.stop.as_secs_f64()),
            &row.strikes.to_string(),
            &wrong.join(" "),
        ]);
        if !wrong.is_empty() {
            beyond.push(case.name);
        }
    }
    if !starts(&binary).await? {
        beyond.push("start");
    }
    Ok(beyond)
}

/// Whether hosts with many threads and poisoned stores answer in time.
async fn starts(binary: &Path) -> Result<bool> {
    let (empty, poisoned) = (start::empty(binary).await?, start::poisoned(binary).await?);
    let many = start::many(binary).await?;
    print_line(&format!(
        "\na host answers after {:.2} s; with {} runs that cannot be gone on with after {:.2} s; with \
         {} threads and one such run after {:.2} s",
        empty.as_secs_f64(),
        start::THREADS,
        poisoned.as_secs_f64(),
        start::MANY,
        many.as_secs_f64()
    ));
    Ok(poisoned.max(many) < empty + LATER_START)
}

fn print_row(row: &[&str]) {
    let [what, cells @ ..] = row else { return };
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>9}")).collect();
    print_line(format!("{what:<17}{}", cells.join("")).trim_end());
}
