//! The attacks of the suite on a host in a separate process: throughput of honest callers, latency
//! of the health endpoint, memory, and time to stop.

mod measure;
mod start;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::runtime::Builder;
use wattle_suite::attack::host::MOST_RSS_BYTES;
use wattle_suite::attack::killed::TASKS;
use wattle_suite::attack::{CASES, Case, case};

use crate::print_line;

/// Minimum throughput of honest callers during an attack, relative to that without one.
const LEAST_RATIO: f64 = 0.5;

/// Maximum latency of the health endpoint.
const LONGEST_OK: Duration = Duration::from_secs(1);

/// Maximum time to stop.
const LONGEST_STOP: Duration = Duration::from_secs(25);

/// Maximum additional start time of a host with many threads, with runs that cannot be recovered or
/// with a run of many tasks.
const LATER_START: Duration = Duration::from_secs(1);

/// Options of the command line.
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
                    None => bail!("unknown attack `{name}`; the attacks are {}", names()),
                },
            }
        }
        if options.cases.is_empty() {
            options.cases = CASES.to_vec();
        }
        let shown = options.binary.display();
        ensure!(options.binary.is_file(), "{shown} is missing; run `cargo xtask attack`");
        Ok(options)
    }
}

fn names() -> String {
    CASES.iter().map(|case| case.name).collect::<Vec<_>>().join(", ")
}

/// Measures the attacks and prints the results.
///
/// # Errors
///
/// If a limit is not enforced, or a result misses its goal.
pub(crate) fn table(words: &[&str]) -> Result<()> {
    let options = Options::read(words)?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let beyond = runtime.block_on(runtime.spawn(all(options)))??;
    ensure!(beyond.is_empty(), "these missed their goals: {}", beyond.join(", "));
    Ok(())
}

/// Returns the attacks that missed their goals.
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
        if row.peak_rss_bytes > MOST_RSS_BYTES {
            wrong.push("memory");
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

/// Returns true if hosts with many threads, with runs that cannot be recovered and with a run of
/// many tasks start in time.
async fn starts(binary: &Path) -> Result<bool> {
    let (empty, poisoned) = (start::empty(binary).await?, start::poisoned(binary).await?);
    let (many, killed) = (start::many(binary).await?, start::killed(binary).await?);
    print_line(&format!(
        "\na host responds after {:.2} s; with {} unrecoverable runs after {:.2} s; with \
         {} threads and one such run after {:.2} s; with a run that was cut amid {TASKS} tasks \
         after {:.2} s",
        empty.as_secs_f64(),
        start::THREADS,
        poisoned.as_secs_f64(),
        start::MANY,
        many.as_secs_f64(),
        killed.as_secs_f64()
    ));
    Ok(poisoned.max(many).max(killed) < empty + LATER_START)
}

fn print_row(row: &[&str]) {
    let [what, cells @ ..] = row else { return };
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>9}")).collect();
    print_line(format!("{what:<19}{}", cells.join("")).trim_end());
}
