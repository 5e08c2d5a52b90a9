//! The worker that sends spans. It batches spans, retries requests, and drops spans that the
//! service does not accept.

mod send;

use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

pub(crate) use self::send::OtlpSender;
use crate::metrics::ExportMetrics;

/// Maximum number of runs whose spans are queued. With some hundred spans for each run, the queue
/// takes a few tens of megabytes at most.
const QUEUE_CAPACITY: usize = 256;

/// Maximum number of spans in one request.
const BATCH_SPANS: usize = 512;

/// Maximum size of one request, in bytes. Services reject bodies of more than four to five
/// megabytes.
const BATCH_BYTES: usize = 3 << 20;

/// Maximum time for which spans wait for further spans to share a request.
const LINGER: Duration = Duration::from_millis(500);

/// The sending end of the queue. An item contains the spans of one run.
pub(crate) type SpanQueue = mpsc::Sender<Vec<Span>>;

/// Creates the queue between [`try_enqueue`] and the worker.
pub(crate) fn queue() -> (SpanQueue, mpsc::Receiver<Vec<Span>>) {
    mpsc::channel(QUEUE_CAPACITY)
}

/// Queues the spans of a run, or drops them if the queue is full.
pub(crate) fn try_enqueue(queue: &SpanQueue, spans: Vec<Span>, metrics: &ExportMetrics) {
    let count = spans.len() as u64;
    if queue.try_send(spans).is_ok() {
        metrics.waiting_spans.inc_by(to_i64(count));
    } else {
        metrics.dropped_spans.inc_by(count);
    }
}

/// Sends spans until the queue is closed and empty.
pub(crate) async fn run_exporter(
    mut runs: mpsc::Receiver<Vec<Span>>,
    mut sender: OtlpSender,
    metrics: ExportMetrics,
) {
    while let Some(mut spans) = runs.recv().await {
        let until = Instant::now() + LINGER;
        while spans.len() < BATCH_SPANS {
            match timeout_at(until, runs.recv()).await {
                Ok(Some(more)) => spans.extend(more),
                _ => break,
            }
        }
        for batch in batches(spans) {
            let count = batch.len() as u64;
            if sender.send(batch).await {
                metrics.sent_spans.inc_by(count);
            } else {
                metrics.dropped_spans.inc_by(count);
            }
            metrics.waiting_spans.dec_by(to_i64(count));
        }
    }
}

/// Splits spans into requests of limited size.
fn batches(spans: Vec<Span>) -> Vec<Vec<Span>> {
    let mut batches: Vec<Vec<Span>> = Vec::new();
    let mut bytes = 0;
    for span in spans {
        let size = span.encoded_len();
        match batches.last_mut() {
            Some(batch) if batch.len() < BATCH_SPANS && bytes + size <= BATCH_BYTES => {
                batch.push(span);
                bytes += size;
            }
            _ => {
                batches.push(vec![span]);
                bytes = size;
            }
        }
    }
    batches
}

fn to_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(bytes: usize) -> Span {
        Span { name: "x".repeat(bytes), ..Span::default() }
    }

    #[test]
    fn requests_are_limited_in_spans_and_bytes() {
        let counts = |spans: Vec<Span>| batches(spans).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(counts(vec![span(1); 1100]), [512, 512, 76]);
        assert_eq!(counts(vec![span(1 << 20); 5]), [2, 2, 1]);
        assert_eq!(counts(vec![span(4 << 20), span(1)]), [1, 1]);
        assert!(counts(Vec::new()).is_empty());
    }
}
