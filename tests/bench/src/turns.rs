//! A long conversation on one thread: whether a turn takes longer after many others.

mod app;
mod conversation;

use std::fs;
use std::ops::Range;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::runtime::Builder;
use wattle_kit::standin::{Config, Handle, Server};
use wattle_suite::workspace::{Workspace, model_toml};

use conversation::{Conversation, MESSAGES, Turn};

use crate::served::Served;
use crate::{median, print_line};

/// Default number of turns.
const TURNS: usize = 400;

/// Minimum number of turns, with which no turn is in two windows.
const LEAST_TURNS: usize = 80;

/// Number of measured turns of a window.
const WINDOW: usize = 10;

/// The turn in the middle of the first window. The turns before it fill caches.
const FIRST: usize = 10;

/// The goal for the time of the last turns as a multiple of that of the first ones.
const GOAL: f64 = 1.2;

/// Measures the turns and prints the results.
///
/// # Errors
///
/// If a run fails, or a turn has an unexpected number of messages.
pub(crate) fn table(words: &[&str]) -> Result<()> {
    let turns = match words {
        [] => TURNS,
        ["--turns", value] => value
            .parse::<usize>()
            .with_context(|| format!("invalid value `{value}` for `--turns`"))?,
        ["--turns", ..] => bail!("`--turns` needs one value"),
        [other, ..] => bail!("unknown option `{other}`; the option is --turns"),
    };
    ensure!(turns >= LEAST_TURNS, "`--turns` must be {LEAST_TURNS} or more");
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    // The measurement is spawned, because the thread of `block_on` wakes more slowly than a worker
    // thread.
    runtime.block_on(runtime.spawn(measure(turns)))?
}

async fn measure(turns: usize) -> Result<()> {
    let standin = Server::start(Config::default()).await?;
    let workspace = Workspace::new();
    app::write(&workspace);
    let file = workspace.store_file();
    let tables = model_toml(&standin) + app::TABLE;
    let served = Served::start_with(workspace, "kind = \"redb\"", &tables).await?;
    print_line(&format!(
        "{turns} turns on one thread, {MESSAGES} messages each; store: redb; medians of {WINDOW} \
         turns; {} cores for server, client and stand-in\n",
        std::thread::available_parallelism()?
    ));
    let rows = print_windows(&served.url, &standin, turns).await;
    let rows = rows.with_context(|| format!("output of the server:\n{}", served.output()))?;
    let memory = served.usage()?.peak_rss_bytes as f64 / 1e6;
    let stored = fs::metadata(&file)?.len() as f64 / 1e6;
    print_line(&format!("\nserver: at most {memory:.0} MB of memory; store of {stored:.1} MB"));
    served.stop().await?;
    let [first, .., last] = rows.as_slice() else { bail!("no turns were measured") };
    print_line(&format!(
        "turn {turns} takes {:.2} times as long as turn {FIRST}, and {:.2} times without model \
         calls; the goal is at most {GOAL:.2}",
        last.total_ms / first.total_ms,
        last.rest_ms / first.rest_ms
    ));
    Ok(())
}

/// Executes all turns, and prints a row for each window.
async fn print_windows(url: &str, standin: &Handle, turns: usize) -> Result<Vec<Row>> {
    let mut conversation = Conversation::open(url).await?;
    print_row(
        "turn",
        &["ms", "model", "rest", "tools", "nodes", "host", "supersteps", "KB"].map(str::to_owned),
    );
    let mut rows = Vec::new();
    for (middle, window) in windows(turns) {
        while conversation.turns() + 1 < window.start {
            next(&mut conversation, standin).await?;
        }
        let stored_bytes = conversation.stored_bytes().await?;
        let mut measured = Vec::with_capacity(WINDOW);
        for _ in window {
            measured.push(next(&mut conversation, standin).await?);
        }
        let grown_bytes = conversation.stored_bytes().await? - stored_bytes;
        let row = Row::new(&measured, grown_bytes);
        row.print(middle);
        rows.push(row);
    }
    conversation.check().await?;
    Ok(rows)
}

/// Executes the next turn. Clears the request log of the stand-in, which would otherwise have the
/// whole conversation once for each model call.
async fn next(conversation: &mut Conversation, standin: &Handle) -> Result<Turn> {
    let turn = conversation.turn().await?;
    standin.clear_requests();
    Ok(turn)
}

/// Returns the measured turns, in windows with the turn in the middle of each. The last window ends
/// with the last turn.
fn windows(turns: usize) -> [(usize, Range<usize>); 5] {
    [FIRST, turns / 4, turns / 2, turns * 3 / 4, turns].map(|middle| {
        let first = (middle + 1 - WINDOW / 2).min(turns + 1 - WINDOW);
        (middle, first..first + WINDOW)
    })
}

/// A row of the table: medians of the turns of a window.
struct Row {
    total_ms: f64,
    model_ms: f64,
    rest_ms: f64,
    tools_ms: f64,
    nodes_ms: f64,
    host_ms: f64,
    supersteps: f64,
    /// Growth of the thread in the store for each turn.
    grown_bytes: f64,
}

impl Row {
    /// Creates the row of a window, in which the thread grew by `grown_bytes`.
    fn new(turns: &[Turn], grown_bytes: f64) -> Self {
        let of = |part: fn(&Turn) -> f64| median(&mut turns.iter().map(part).collect::<Vec<_>>());
        Self {
            total_ms: of(|turn| turn.total_ms),
            model_ms: of(|turn| turn.model_ms),
            rest_ms: of(Turn::rest_ms),
            tools_ms: of(|turn| turn.tools_ms),
            nodes_ms: of(Turn::nodes_ms),
            host_ms: of(Turn::host_ms),
            supersteps: of(|turn| turn.supersteps as f64),
            grown_bytes: grown_bytes / turns.len() as f64,
        }
    }

    fn print(&self, turn: usize) {
        let Self { total_ms, model_ms, rest_ms, tools_ms, nodes_ms, host_ms, .. } = *self;
        let times = [total_ms, model_ms, rest_ms, tools_ms, nodes_ms, host_ms];
        let mut cells: Vec<String> = times.iter().map(|time| format!("{time:.2}")).collect();
        cells.push(format!("{:.0}", self.supersteps));
        cells.push(format!("{:.1}", self.grown_bytes / 1e3));
        print_row(&turn.to_string(), &cells);
    }
}

fn print_row(turn: &str, cells: &[String]) {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>11}")).collect();
    print_line(&format!("{turn:<6}{}", cells.join("")));
}

#[cfg(test)]
mod tests {
    use wattle_suite::server::Setup;

    use super::{Conversation, LEAST_TURNS, TURNS, WINDOW, app, windows};

    #[test]
    fn windows_are_around_their_turns_and_do_not_overlap() {
        let of = |turns| windows(turns).map(|(middle, window)| (middle, window.start, window.end));
        assert_eq!(
            of(TURNS),
            [(10, 6, 16), (100, 96, 106), (200, 196, 206), (300, 296, 306), (400, 391, 401)]
        );
        let least = windows(LEAST_TURNS);
        for pair in least.windows(2) {
            assert!(pair[0].1.end <= pair[1].1.start, "{pair:?}");
        }
        assert!(least.iter().all(|(_, window)| window.len() == WINDOW));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn turn_has_the_messages_and_supersteps_of_its_calls() {
        let setup = Setup::bare().await;
        app::write(&setup.workspace);
        let server = setup.with(app::TABLE).start().await;
        let mut conversation = Conversation::open(&server.url("")).await.unwrap();
        for _ in 0..2 {
            let turn = conversation.turn().await.unwrap();
            assert_eq!(turn.supersteps, 2 * app::CALLS + 1);
        }
        conversation.check().await.unwrap();
        assert!(conversation.stored_bytes().await.unwrap() > 0.0);
    }
}
