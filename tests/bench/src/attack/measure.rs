//! Measures one attack.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use wattle_suite::attack::host::Host;
use wattle_suite::attack::{Attack, Case};

use crate::usage::Usage;

/// Number of concurrent honest callers.
const CALLERS: u32 = 4;

/// Interval at which each honest caller starts runs. Together they leave most of the machine to the
/// attack.
const PERIOD: Duration = Duration::from_millis(200);

/// Pause between two requests of the health endpoint.
const PAUSE: Duration = Duration::from_millis(20);

/// The results of one attack.
pub(super) struct Row {
    /// Honest runs per second without the attack.
    pub(super) alone: f64,
    /// Honest runs per second during the attack.
    pub(super) beside: f64,
    /// The slowest response of the health endpoint during the attack.
    pub(super) longest_ok: Duration,
    /// Peak memory of the host.
    pub(super) peak_rss_bytes: u64,
    /// Time from the signal to the end of the process during the attack.
    pub(super) stop: Duration,
    /// Number of strikes whose limit was enforced.
    pub(super) strikes: usize,
}

/// Measures one attack.
pub(super) async fn of(case: Case, binary: &Path, time: Duration) -> Result<Row> {
    let host = Arc::new(case.start_host(binary).await?);
    // The first round warms up.
    honest(&host, time / 4).await?;
    let (alone, _) = honest(&host, time).await?;
    let mut attack = Attack::begin(case, &host, case.lanes);
    let (beside, longest_ok) = honest(&host, time).await?;
    attack.struck(1).await?;
    let peak_rss_bytes = Usage::of(&host.id().to_string())?.peak_rss_bytes;
    attack.host_stops();
    let begin = Instant::now();
    host.terminate().await?;
    let (stop, strikes) = (begin.elapsed(), attack.strikes());
    attack.end().await?;
    Ok(Row { alone, beside, longest_ok, peak_rss_bytes, stop, strikes })
}

/// Returns honest runs per second, and the slowest response of the health endpoint. Callers start
/// runs at scheduled times, or as soon as the previous run has ended.
async fn honest(host: &Host, time: Duration) -> Result<(f64, Duration)> {
    let begin = Instant::now();
    let end = begin + time;
    let callers = try_join_all((0..CALLERS).map(|caller| async move {
        let mut next = begin + PERIOD * caller / CALLERS;
        let mut runs = 0_usize;
        while next < end {
            tokio::time::sleep_until(next.into()).await;
            host.honest.run().await?;
            runs += usize::from(Instant::now() < end);
            next = (next + PERIOD).max(Instant::now());
        }
        anyhow::Ok(runs)
    }));
    let looks = async {
        let mut longest = Duration::ZERO;
        while Instant::now() < end {
            let asked = Instant::now();
            host.honest.ok().await?;
            longest = longest.max(asked.elapsed());
            tokio::time::sleep(PAUSE).await;
        }
        anyhow::Ok(longest)
    };
    let (runs, longest) = tokio::try_join!(callers, looks)?;
    let runs: usize = runs.iter().sum();
    Ok((runs as f64 / time.as_secs_f64(), longest))
}
