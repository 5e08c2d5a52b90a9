//! Many open streams and many runs per second on a separate server, with a check for lost events.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::runtime::Builder;
use wattle_suite::load::{Load, Plan, Report, Tally, Times};

use crate::print_line;
use crate::served::Served;
use crate::usage::Usage;

/// Open files of a process besides those of streams: connections of running runs, the store, the
/// runtime.
const OTHER_FILES: u64 = 1_000;

/// Maximum number of failures that are printed.
const SHOWN_FAILURES: usize = 10;

/// Options of the command line.
struct Options {
    streams: usize,
    rate: f64,
    seconds: f64,
    store: String,
}

impl Options {
    fn read(words: &[&str]) -> Result<Self> {
        let mut options =
            Self { streams: 500, rate: 100.0, seconds: 60.0, store: "redb".to_owned() };
        for pair in words.chunks(2) {
            let [name, value] = pair else { bail!("`{}` needs a value", pair[0]) };
            let unreadable = || format!("invalid value `{value}` for `{name}`");
            match *name {
                "--streams" => options.streams = value.parse().with_context(unreadable)?,
                "--rate" => options.rate = value.parse().with_context(unreadable)?,
                "--seconds" => options.seconds = value.parse().with_context(unreadable)?,
                "--store" => (*value).clone_into(&mut options.store),
                other => {
                    bail!("unknown option `{other}`; use --streams, --rate, --seconds or --store")
                }
            }
        }
        ensure!(options.streams > 0 && options.rate > 0.0, "too few streams or runs");
        Ok(options)
    }

    fn plan(&self) -> Plan {
        #[expect(clippy::cast_sign_loss, reason = "the cast turns a negative number into zero")]
        let runs = (self.rate * self.seconds) as usize;
        Plan { streams: self.streams, runs, rate: self.rate }
    }
}

/// Applies the load and prints the results.
///
/// # Errors
///
/// If an event was lost or a run failed.
pub(crate) fn table(words: &[&str]) -> Result<()> {
    let options = Options::read(words)?;
    check_files(options.streams)?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(runtime.spawn(measure(options)))?
}

async fn measure(options: Options) -> Result<()> {
    let plan = options.plan();
    let Options { store, .. } = &options;
    print_line(&format!(
        "{} open streams of threads, {} runs a second, {} in total; store: {store}; {} \
         cores for server and client",
        plan.streams,
        plan.rate,
        plan.runs,
        std::thread::available_parallelism()?
    ));
    let served = Served::start(store).await?;
    let load = Load::open(&served.url, plan).await?;
    let before = (served.usage()?, Usage::of("self")?);
    let seen = load.run().await?;
    let after = (served.usage()?, Usage::of("self")?);
    let elapsed = seen.elapsed;
    let report = seen.check().await?;
    print(&report);
    print_line(&format!(
        "\nserver: at most {:.0} MB of memory, {:.2} cores busy; client: {:.2} cores busy",
        after.0.peak_rss_bytes as f64 / 1e6,
        after.0.cores_since(&before.0, elapsed),
        after.1.cores_since(&before.1, elapsed),
    ));
    if !report.is_whole() {
        print_line(&format!("\noutput of the server:\n{}", served.output()));
    }
    served.stop().await?;
    ensure!(report.is_whole(), "events were lost or runs failed; see above");
    Ok(())
}

fn print(report: &Report) {
    let failed = report.failures.len();
    print_line(&format!(
        "{} runs in {:.1} s, {:.1} a second; {failed} failures; started at most {:.0} ms late\n",
        report.runs,
        report.elapsed.as_secs_f64(),
        report.runs as f64 / report.elapsed.as_secs_f64(),
        milliseconds(report.late),
    ));
    for failure in report.failures.iter().take(SHOWN_FAILURES) {
        print_line(failure);
    }
    let head =
        ["events", "expected", "delivered", "lost", "twice", "changed", "unknown", "unordered"];
    print_row(&head.map(str::to_owned));
    print_tally("of runs' own streams", &report.own);
    print_tally("of streams of threads", &report.threads);
    print_tally("typed, of threads", &report.typed);
    print_tally("states and ends in the log", &report.log);
    print_line("");
    print_row(&["milliseconds", "p50", "p95", "p99", "max"].map(str::to_owned));
    print_times("to the first event", &report.first_event);
    print_times("to the end of the run", &report.whole_run);
}

fn print_tally(what: &str, tally: &Tally) {
    let Tally { expected, delivered, lost, twice, changed, unknown, unordered } = *tally;
    let counts = [expected, delivered, lost, twice, changed, unknown, unordered];
    let cells: Vec<String> = counts.iter().map(usize::to_string).collect();
    print_row(&[vec![what.to_owned()], cells].concat());
}

fn print_times(what: &str, times: &Times) {
    let cells = [50, 95, 99, 100].map(|percent| format!("{:.1}", times.percentile_ms(percent)));
    print_row(&[vec![what.to_owned()], cells.to_vec()].concat());
}

fn print_row(row: &[String]) {
    let [what, cells @ ..] = row else { return };
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>10}")).collect();
    print_line(&format!("{what:<27}{}", cells.join("")));
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Checks the limit of open files. Each stream takes one file in the client and one in the server,
/// and both have the limit of the shell.
fn check_files(streams: usize) -> Result<()> {
    let limits = fs::read_to_string("/proc/self/limits")?;
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let allowed = files.and_then(|files| files.split_whitespace().next()?.parse::<u64>().ok());
    let needed = streams as u64 + OTHER_FILES;
    // The limit `unlimited` is not a number.
    ensure!(
        allowed.is_none_or(|allowed| allowed >= needed),
        "the limit of open files is {}; raise it with `ulimit -n {needed}`",
        allowed.unwrap_or_default()
    );
    Ok(())
}
