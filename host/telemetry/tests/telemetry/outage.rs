//! Tests of the export to services that are unavailable, slow, or reject requests.

use std::sync::Arc;
use std::time::Duration;

use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_run::ports::Observer as _;
use wattle_telemetry::Telemetry;

use crate::support::{
    NoModel, TRACES, config, log, metric, note, spans, standin, store, tell, until,
};

fn fault(fault: Fault, times: Option<u32>) -> FaultRule {
    FaultRule { on: Pattern::path(TRACES), fault, times, skip: 0 }
}

fn status(status: u16, retry_after: Option<&str>) -> Fault {
    Fault::Status { status, retry_after: retry_after.map(str::to_owned), body: None }
}

#[tokio::test]
async fn transient_export_errors_are_retried() {
    for (trouble, times) in [(status(503, None), 1), (status(429, Some("0")), 2)] {
        let standin = standin().await;
        standin.fault(fault(trouble, Some(times)));
        let log = log();
        let text = tell(&config(&standin, "sk-test"), &log, note(log.len())).await;
        assert_eq!(standin.requests().len(), times as usize + 1);
        assert_eq!(metric(&text, "wattle_telemetry_sent_spans_total"), 6, "{text}");
        assert_eq!(metric(&text, "wattle_telemetry_failed_requests_total"), i64::from(times));
    }
}

#[tokio::test]
async fn rejected_key_is_not_retried() {
    let standin = standin().await;
    let log = log();
    let text = tell(&config(&standin, "bad-key"), &log, note(log.len())).await;
    assert_eq!(standin.requests().len(), 1);
    assert_eq!(metric(&text, "wattle_telemetry_dropped_spans_total"), 6, "{text}");
}

#[tokio::test]
async fn outage_drops_spans_beyond_the_queue() {
    let standin = standin().await;
    standin.fault(fault(Fault::Hang, None));
    let log = log();
    let config = config(&standin, "sk-test");
    let telemetry = Telemetry::start(&config, store(&log).await, Arc::new(NoModel), None).unwrap();
    let started = std::time::Instant::now();
    for _ in 0..1_000 {
        telemetry.run_ended(note(log.len()));
    }
    assert!(started.elapsed() < Duration::from_secs(5), "observing does not wait");
    let runs = "wattle_runs_total{app=\"asset\",graph=\"main\",status=\"completed\"} 1000";
    let dropped = |text: &str| {
        metric(text, "wattle_telemetry_dropped_spans_total") > 0
            && metric(text, "wattle_telemetry_waiting_runs") == 0
    };
    let text = until(&telemetry, dropped).await;
    assert!(text.contains(runs), "{text}");
    let waiting = metric(&text, "wattle_telemetry_waiting_spans");
    let lost = metric(&text, "wattle_telemetry_dropped_spans_total");
    assert_eq!(waiting + lost, 6_000, "{text}");
    assert!(waiting <= (256 + 100) * 6, "{text}");
    let closing = std::time::Instant::now();
    telemetry.close(Duration::from_millis(200)).await;
    assert!(closing.elapsed() < Duration::from_secs(2), "closing has a limit");
}

#[tokio::test]
async fn no_spans_are_sent_without_a_url() {
    let standin = standin().await;
    let log = log();
    let text = tell(&wattle_telemetry::TelemetryConfig::default(), &log, note(log.len())).await;
    assert!(spans(&standin).is_empty());
    assert!(text.contains("wattle_model_calls_total"), "{text}");
}
