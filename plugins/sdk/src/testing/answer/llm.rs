//! Implements `llm` with the script.

use crate::failure::Failure;
use crate::json::Extra;
use crate::llm::completion::CALL_IDS;
use crate::llm::history::HISTORY;
use crate::llm::{Completion, GeneratedImage, ImageRequest, Request, RouteInfo, StreamEvent};
use crate::message::Part;
use crate::testing::answer::blob;
use crate::testing::state::{play, with};

pub(crate) fn complete(request: Request) -> Result<Completion, Failure> {
    with(|state| state.notes.llm.push(request.clone()))?;
    let mut completion = play(|state| state.llm.clone(), &request, "FakeHost::llm")?;
    if request.extra.contains_key(HISTORY) {
        add_call_ids(&mut completion);
    }
    Ok(completion)
}

/// Adds the ids of the tool calls to the completion of a request with a history, unless the script
/// sets others.
fn add_call_ids(completion: &mut Completion) {
    let ids: Vec<String> = completion.tool_calls().map(|call| call.id.clone()).collect();
    if !ids.is_empty() {
        completion.extra.entry(CALL_IDS).or_insert(ids.into());
    }
}

pub(crate) fn complete_all(requests: Vec<Request>) -> Vec<Result<Completion, Failure>> {
    requests.into_iter().map(complete).collect()
}

/// A completion whose deltas have one word each. All deltas are available immediately.
#[derive(Debug)]
pub(crate) struct Stream {
    completion: Completion,
    pieces: Option<Vec<StreamEvent>>,
}

pub(crate) fn stream(request: Request) -> Result<Stream, Failure> {
    let completion = complete(request)?;
    Ok(Stream { pieces: Some(pieces(&completion)), completion })
}

fn pieces(completion: &Completion) -> Vec<StreamEvent> {
    let words =
        |text: &str| -> Vec<String> { text.split_inclusive(' ').map(str::to_owned).collect() };
    let mut calls = 0..;
    let pieces = completion.parts.iter().flat_map(|part| match part {
        Part::Text(text) => words(text).into_iter().map(StreamEvent::Text).collect(),
        Part::Reasoning(text) => words(text).into_iter().map(StreamEvent::Reasoning).collect(),
        Part::ToolCall(call) => vec![StreamEvent::ToolCallDelta {
            index: calls.next().unwrap_or_default(),
            name: Some(call.name.clone()),
            arguments: call.arguments.to_string(),
        }],
        _ => Vec::new(),
    });
    pieces.collect()
}

impl Stream {
    #[expect(clippy::unnecessary_wraps, reason = "a host may fail here")]
    pub(crate) fn next(&mut self) -> Result<Vec<StreamEvent>, Failure> {
        Ok(self.pieces.take().unwrap_or_default())
    }

    #[expect(clippy::unnecessary_wraps, reason = "a host may fail here")]
    pub(crate) fn finish(&mut self) -> Result<Completion, Failure> {
        Ok(self.completion.clone())
    }
}

pub(crate) fn route(name: &str) -> Result<RouteInfo, Failure> {
    with(|state| state.routes.get(name).cloned())?.ok_or_else(|| {
        Failure::not_found(format!("there is no route `{name}`; add it with `FakeHost::route`"))
    })
}

pub(crate) fn generate_images(request: ImageRequest) -> Result<Vec<GeneratedImage>, Failure> {
    let pictures = play(|state| state.images.clone(), &request, "FakeHost::images")?;
    let model = request.route.clone();
    with(|state| state.notes.images.push(request))?;
    let store = |(media_type, bytes): (String, Vec<u8>)| {
        let blob = blob::put(&bytes, &media_type)?;
        let facts = [
            ("link", blob::link(&blob)?),
            ("provider", "fake".to_owned()),
            ("model", model.clone()),
        ];
        let extra: Extra =
            facts.into_iter().map(|(name, fact)| (name.to_owned(), fact.into())).collect();
        Ok(GeneratedImage { blob, media_type, extra })
    };
    pictures.into_iter().map(store).collect()
}
