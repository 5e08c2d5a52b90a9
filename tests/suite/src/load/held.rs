//! A stream of a thread with all of its runs, read as long as wanted.

use std::ops::Range;
use std::time::Duration;

use anyhow::Result;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::load::client::{Client, Frames};
use crate::load::frame::{Frame, Mark};

/// Silence after which nothing more is taken to come, when the runs are over: far longer than
/// anything takes, also in a debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is subscribed to of the typed events.
const CHANNELS: [&str; 5] = ["values", "updates", "messages", "custom", "lifecycle"];

/// Both kinds of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The frames of the runs' own streams.
    Runs,
    /// Typed events, for the streaming protocol.
    Typed,
}

/// What was read of a stream.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) marks: Vec<Mark>,
    /// Runs that ended, and the frames that their own streams have too; of [`Kind::Typed`] without
    /// their ids.
    pub(super) runs: Vec<(String, Range<usize>)>,
    /// Numbers of the frames that show a state.
    pub(super) states: Vec<u64>,
}

/// An open stream that somebody reads.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) kind: Kind,
    /// Ends of runs to read, once it is known how many there are.
    ends: watch::Sender<Option<usize>>,
    reader: JoinHandle<Reading>,
}

impl Held {
    /// Opens a stream of what happens from now on.
    pub(super) async fn open(client: &Client, thread: &str, kind: Kind) -> Result<Self> {
        let frames = open(client, thread, kind, None).await?;
        let (ends, wanted) = watch::channel(None);
        let reader = tokio::spawn(Reading::read(frames, kind, wanted));
        Ok(Self { kind, ends, reader })
    }

    /// Reads on until so many runs have ended, or until nothing comes any more.
    pub(super) async fn close(self, ends: usize) -> Result<Reading> {
        self.ends.send_replace(Some(ends));
        Ok(self.reader.await?)
    }
}

impl Reading {
    /// Reads a thread from its first event to the end of so many runs.
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
                    // What is missing then is seen when readings are compared.
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

/// Opens a stream, from what happens next or behind the event that is named.
async fn open(client: &Client, thread: &str, kind: Kind, after: Option<&str>) -> Result<Frames> {
    let request = match kind {
        Kind::Runs => {
            let request = client.request(Method::GET, &format!("/threads/{thread}/stream"));
            match after {
                Some(after) => request.header("last-event-id", after),
                None => request,
            }
        }
        // From the first event on, always.
        Kind::Typed => client
            .request(Method::POST, &format!("/threads/{thread}/stream/events"))
            .json(&json!({ "channels": CHANNELS })),
    };
    client.stream(request).await
}

/// The run whose end a frame tells; without its id in typed events.
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
    fn frames_are_told_apart_by_run() {
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
    fn only_the_end_of_the_run_itself_counts() {
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
