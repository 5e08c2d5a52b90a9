//! The resource `completion-stream`: a completion that a guest reads as deltas.

use wasmtime::component::{Resource, ResourceTableError};
use wattle_graph::call::CallKind;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{CompletionRequest, Delta};
use wattle_run::gate::stream::GateStream;

use crate::bindings::wattle::plugin::llm;
use crate::guest::Guest;
use crate::halt::Halt;
use crate::import::llm::from_completion;
use crate::import::types::too_many;

const STREAM: &str = CallKind::Stream.name();

/// A guest's handle of a stream. Dropping it cancels the model call. It is public because the
/// generated bindings export it.
#[expect(unreachable_pub, reason = "the generated bindings export it again")]
pub struct OpenStream(GateStream);

impl Guest {
    /// Starts a streamed model call.
    pub(crate) fn open_stream(
        &mut self,
        request: CompletionRequest,
    ) -> Result<Resource<OpenStream>, Halt> {
        let stream = self.gate(STREAM)?.stream(request)?;
        let handle = self.table.push(OpenStream(stream));
        Ok(handle.map_err(|error| too_many(STREAM, &error))?)
    }
}

impl llm::HostCompletionStream for Guest {
    async fn next(&mut self, handle: Resource<OpenStream>) -> Result<Vec<llm::StreamEvent>, Halt> {
        let stream = held(self.table.get_mut(&handle))?;
        self.cpu.stop();
        let answer = stream.next().await;
        self.cpu.start();
        Ok(answer?.into_iter().map(from_delta).collect())
    }

    async fn finish(&mut self, handle: Resource<OpenStream>) -> Result<llm::Completion, Halt> {
        let stream = held(self.table.get_mut(&handle))?;
        self.cpu.stop();
        let answer = stream.finish().await;
        self.cpu.start();
        Ok(from_completion(answer?))
    }

    async fn drop(&mut self, handle: Resource<OpenStream>) -> wasmtime::Result<()> {
        self.table.delete(handle)?;
        Ok(())
    }
}

fn held(held: Result<&mut OpenStream, ResourceTableError>) -> Result<&mut GateStream, Failure> {
    held.map(|open| &mut open.0).map_err(|error| {
        Failure::new(code::CONFLICT, format!("`{STREAM}`: the stream is closed: {error}"))
    })
}

/// Converts a delta. A delta for which the contract has no case becomes JSON in the format of the
/// event log.
fn from_delta(delta: Delta) -> llm::StreamEvent {
    match delta {
        Delta::Text { text } => llm::StreamEvent::Text(text),
        Delta::Reasoning { text } => llm::StreamEvent::Reasoning(text),
        Delta::ToolCall { index, name, arguments, .. } => {
            llm::StreamEvent::ToolCallDelta((index, name, arguments))
        }
        other => llm::StreamEvent::Other(serde_json::json!(other).to_string()),
    }
}
