//! Requests of the studio to a host with many threads and a run with many host calls.

mod plan;
mod requests;

use std::fs;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::runtime::Builder;
use wattle_suite::load::{Client, Times};
use wattle_suite::stored_threads::fill;
use wattle_suite::workspace::Workspace;

use plan::Plan;
use requests::{Case, Sample, cases};

use crate::print_line;
use crate::served::Served;

/// Options of the command line.
struct Options {
    plan: Plan,
    requests: usize,
}

impl Options {
    fn read(words: &[&str]) -> Result<Self> {
        let mut options = Self { plan: Plan { threads: 100_000, calls: 5_000 }, requests: 20 };
        for pair in words.chunks(2) {
            let [name, value] = pair else { bail!("`{}` needs a value", pair[0]) };
            let unreadable = || format!("invalid value `{value}` for `{name}`");
            match *name {
                "--threads" => options.plan.threads = value.parse().with_context(unreadable)?,
                "--calls" => options.plan.calls = value.parse().with_context(unreadable)?,
                "--requests" => options.requests = value.parse().with_context(unreadable)?,
                other => bail!("unknown option `{other}`; use --threads, --calls or --requests"),
            }
        }
        let Plan { threads, calls } = options.plan;
        // The second page begins after this many threads.
        ensure!(threads >= 100, "`--threads` must be 100 or more");
        ensure!(calls > 0 && options.requests > 0, "`--calls` and `--requests` must be 1 or more");
        Ok(options)
    }
}

/// Measures the requests and prints the results.
///
/// # Errors
///
/// If a request fails, or its response has an unexpected number of items.
pub(crate) fn table(words: &[&str]) -> Result<()> {
    let options = Options::read(words)?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    // The measurement is spawned, because the thread of `block_on` wakes more slowly than a worker
    // thread.
    runtime.block_on(runtime.spawn(measure(options)))?
}

async fn measure(Options { plan, requests }: Options) -> Result<()> {
    let workspace = Workspace::new();
    let file = workspace.store_file();
    let began = Instant::now();
    fill(&file, plan.stored()).await?;
    print_line(&format!(
        "{} threads, and one with a run of {} host calls, written in {:.1} s; store of {:.0} MB; \
         median and maximum of {requests} requests\n",
        plan.threads,
        plan.calls,
        began.elapsed().as_secs_f64(),
        fs::metadata(&file)?.len() as f64 / 1e6
    ));
    let served = Served::start_in(workspace, "kind = \"redb\"").await?;
    let measured = print_cases(&served.url, plan, requests).await;
    measured.with_context(|| format!("output of the server:\n{}", served.output()))?;
    let memory = served.usage()?.peak_rss_bytes as f64 / 1e6;
    print_line(&format!("\nserver: at most {memory:.0} MB of memory"));
    served.stop().await
}

async fn print_cases(url: &str, plan: Plan, requests: usize) -> Result<()> {
    let client = Client::new(url)?;
    print_row("", ["median ms", "max ms", "KB", "items"].map(str::to_owned));
    for case in cases(plan)? {
        print_case(&client, &case, requests).await?;
    }
    Ok(())
}

/// Sends the request of a case some times and prints a row of the table.
async fn print_case(client: &Client, case: &Case, requests: usize) -> Result<()> {
    let (mut times, mut last) = (Vec::new(), Sample::default());
    for _ in 0..requests {
        last = case.send(client).await?;
        times.push(last.took);
    }
    let times: Times = times.into_iter().collect();
    let [median, max] = [50, 100].map(|percent| format!("{:.1}", times.percentile_ms(percent)));
    let size = format!("{:.1}", last.bytes as f64 / 1e3);
    print_row(&case.name, [median, max, size, last.items.to_string()]);
    Ok(())
}

fn print_row(name: &str, cells: [String; 4]) {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>11}")).collect();
    print_line(&format!("{name:<39}{}", cells.join("")));
}

#[cfg(test)]
mod tests {
    use wattle_suite::load::Client;
    use wattle_suite::server::Setup;

    use super::{Plan, cases, fill};

    #[tokio::test]
    async fn responses_have_the_threads_and_events_of_the_plan() {
        let plan = Plan { threads: 300, calls: 600 };
        let setup = Setup::bare().await;
        fill(&setup.workspace.store_file(), plan.stored()).await.unwrap();
        let server = setup.start().await;
        let client = Client::new(&server.url("")).unwrap();
        for case in cases(plan).unwrap() {
            case.send(&client).await.unwrap();
        }
    }
}
