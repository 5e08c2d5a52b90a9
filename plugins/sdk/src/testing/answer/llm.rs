//! Models, answered by the script.

use crate::failure::Failure;
use crate::json::Extra;
use crate::llm::{Completion, GeneratedImage, ImageRequest, Request, StreamEvent};
use crate::testing::answer::blob;
use crate::testing::state::{play, with};

pub(crate) fn complete(request: Request) -> Result<Completion, Failure> {
    with(|state| state.notes.llm.push(request.clone()))?;
    play(|state| state.llm.clone(), &request, "FakeHost::llm")
}

pub(crate) fn complete_all(requests: Vec<Request>) -> Vec<Result<Completion, Failure>> {
    requests.into_iter().map(complete).collect()
}

/// An answer that is there at once but handed out word by word.
#[derive(Debug)]
pub(crate) struct Stream {
    completion: Completion,
    words: Option<Vec<StreamEvent>>,
}

pub(crate) fn stream(request: Request) -> Result<Stream, Failure> {
    let completion = complete(request)?;
    let text = completion.text();
    let words = text.split_inclusive(' ').map(|word| StreamEvent::Text(word.to_owned()));
    Ok(Stream { words: Some(words.collect()), completion })
}

impl Stream {
    #[expect(clippy::unnecessary_wraps, reason = "a host may fail here")]
    pub(crate) fn next(&mut self) -> Result<Vec<StreamEvent>, Failure> {
        Ok(self.words.take().unwrap_or_default())
    }

    #[expect(clippy::unnecessary_wraps, reason = "a host may fail here")]
    pub(crate) fn finish(&mut self) -> Result<Completion, Failure> {
        Ok(self.completion.clone())
    }
}

pub(crate) fn generate_images(request: ImageRequest) -> Result<Vec<GeneratedImage>, Failure> {
    let pictures = play(|state| state.images.clone(), &request, "FakeHost::images")?;
    with(|state| state.notes.images.push(request))?;
    let store = |(media_type, bytes): (String, Vec<u8>)| {
        let blob = blob::put(&bytes, &media_type)?;
        Ok(GeneratedImage { blob, media_type, extra: Extra::new() })
    };
    pictures.into_iter().map(store).collect()
}
