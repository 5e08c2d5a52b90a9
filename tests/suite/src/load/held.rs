//! A stream of a thread with all of its runs, read until it is closed.

use std::ops::Range;
use std::time::Duration;

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::load::client::{Client, Frames};
use crate::load::frame::{Frame, Mark};

/// Silence after the last run after which no more server-sent events are expected. It is far longer
/// than any operation, even in a debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The channels of typed events to which clients subscribe.
const CHANNELS: [&str; 5] = ["values", "updates", "messages", "custom", "lifecycle"];

/// The two kinds of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The server-sent events of the streams of runs.
    Runs,
    /// Typed events of the streaming protocol.
    Typed,
}

/// The server-sent events that were read from a stream.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) marks: Vec<Mark>,
    /// Runs that ended, with the range of their server-sent events. For [`Kind::Typed`] the ids are
    /// empty.
    pub(super) runs: Vec<(String, Range<usize>)>,
    /// Numbers of the server-sent events with a state.
    pub(super) states: Vec<u64>,
}

/// An open stream with a task that reads it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) kind: Kind,
    /// The number of ends of runs to read, once it is known.
    ends: watch::Sender<Option<usize>>,
    reader: JoinHandle<Reading>,
}

impl Held {
    /// Opens a stream of all events from now on.
    pub(super) async fn open(client: &Client, thread: &str, kind: Kind) -> Result<Self> {
        let frames = open(client, thread, kind, None).await?;
        let (ends, wanted) = watch::channel(None);
        let reader = tokio::spawn(Reading::read(frames, kind, wanted));
        Ok(Self { kind, ends, reader })
    }

    /// Reads until `ends` runs have ended, or until no more server-sent events arrive.
    pub(super) async fn close(self, ends: usize) -> Result<Reading> {
        self.ends.send_replace(Some(ends));
        Ok(self.reader.await?)
    }
}

impl Reading {
    /// Reads a thread from its first event until `ends` runs have ended.
    pub(super) async fn again(
        client: &Client,
        thread: &str,
        kind: Kind,
        ends: usize,
    ) -> Result<Self> {
        let frames = open(client, thread, kind, Some("-1")).await?;
        let (_ends, wanted) = watch::channel(Some(ends));
        Ok(Self::read(frames, kind, wanted).await)
    }

    async fn read(
        mut frames: Frames,
        kind: Kind,
        mut wanted: watch::Receiver<Option<usize>>,
    ) -> Self {
        let mut reading = Self::default();
        loop {
            let ends = *wanted.borrow_and_update();
            if ends.is_some_and(|ends| reading.runs.len() >= ends) {
                return reading;
            }
            tokio::select! {
                frame = frames.next() => match frame {
                    Ok(Some(frame)) => reading.note(kind, &frame),
                    // The comparison of readings reveals the missing server-sent events.
                    Ok(None) | Err(_) => return reading,
                },
                Ok(()) = wanted.changed() => {}
                () = tokio::time::sleep(PATIENCE), if ends.is_some() => return reading,
            }
        }
    }

    fn note(&mut self, kind: Kind, frame: &Frame) {
        let Some(mark) = frame.mark() else { return };
        if frame.event == "values" {
            self.states.push(mark.number);
        }
        if let Some(run) = ended(kind, frame) {
            let from = self.runs.last().map_or(0, |(_, frames)| frames.end + 1);
            self.runs.push((run, from..self.marks.len()));
        }
        self.marks.push(mark);
    }
}

/// Opens a stream at the next event, or after the event of an id.
async fn open(client: &Client, thread: &str, kind: Kind, after: Option<&str>) -> Result<Frames> {
    let request = match kind {
        Kind::Runs => {
            let request = client.request(Method::GET, &format!("/threads/{thread}/stream"));
            match after {
                Some(after) => request.header("last-event-id", after),
                None => request,
            }
        }
        // This endpoint always starts at the first event.
        Kind::Typed => client
            .request(Method::POST, &format!("/threads/{thread}/stream/events"))
            .json(&json!({ "channels": CHANNELS })),
    };
    client.stream(request).await
}

/// Returns the run that the server-sent event ends; its id is empty for typed events.
fn ended(kind: Kind, frame: &Frame) -> Option<String> {
    let data = || serde_json::from_str::<Value>(&frame.data).ok();
    match (kind, frame.event.as_str()) {
        (Kind::Runs, "metadata") => {
            let data = data().filter(|data| data["status"] == "run_done")?;
            Some(data["run_id"].as_str()?.to_owned())
        }
        (Kind::Typed, "lifecycle") => {
            let params = data()?["params"].take();
            let is_over = ["completed", "failed", "interrupted"]
                .iter()
                .any(|word| params["data"]["event"] == *word);
            (is_over && params["namespace"] == json!([])).then(String::new)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Reading};
    use crate::load::frame::Frame;

    fn note(reading: &mut Reading, kind: Kind, event: &str, id: &str, data: &str) {
        let frame = Frame { event: event.into(), id: id.into(), data: data.into() };
        reading.note(kind, &frame);
    }

    #[test]
    fn frames_are_grouped_by_run() {
        let mut reading = Reading::default();
        for run in 0..2_u64 {
            let data = format!(r#"{{"status":"run_done","run_id":"{run}"}}"#);
            for (event, data) in [("metadata", "{}"), ("values", "{}"), ("metadata", &data)] {
                let id = format!("1-{}", reading.marks.len());
                note(&mut reading, Kind::Runs, event, &id, data);
            }
        }
        assert_eq!(reading.runs, [("0".to_owned(), 0..2), ("1".to_owned(), 3..5)]);
        assert_eq!((reading.states, reading.marks.len()), (vec![1, 4], 6));
    }

    #[test]
    fn end_of_a_subgraph_does_not_end_the_run() {
        let mut reading = Reading::default();
        for (namespace, event) in
            [("[]", "running"), (r#"["a:1"]"#, "completed"), ("[]", "interrupted")]
        {
            let data =
                format!(r#"{{"params":{{"namespace":{namespace},"data":{{"event":"{event}"}}}}}}"#);
            let id = reading.marks.len().to_string();
            note(&mut reading, Kind::Typed, "lifecycle", &id, &data);
        }
        assert_eq!(reading.runs, [(String::new(), 0..2)]);
    }
}
