//! The resource `completion-stream`: a completion that a guest reads as deltas.

use wasmtime::component::{Resource, ResourceTableError};
use wattle_graph::call::CallKind;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{CompletionRequest, Delta};

use crate::bindings::wattle::plugin::llm;
use crate::handles::StreamHandle;
use crate::host_state::HostState;
use crate::import::types::too_many_resources;
use crate::import_error::ImportError;

/// The function that starts a stream.
pub(super) const STREAM: &str = CallKind::Stream.name();

impl HostState {
    /// Starts a streamed model call.
    pub(crate) fn open_stream(
        &mut self,
        request: CompletionRequest,
    ) -> Result<Resource<StreamHandle>, ImportError> {
        let history = request.history.clone();
        let stream = self.gate(STREAM)?.stream(request)?;
        let handle = self.table.push(StreamHandle { stream, history });
        Ok(handle.map_err(|error| too_many_resources(STREAM, &error))?)
    }
}

impl llm::HostCompletionStream for HostState {
    async fn next(
        &mut self,
        handle: Resource<StreamHandle>,
    ) -> Result<Vec<llm::StreamEvent>, ImportError> {
        let StreamHandle { stream, .. } = stream_of(self.table.get_mut(&handle))?;
        self.cpu.leave_guest();
        let result = stream.next().await;
        self.cpu.enter_guest();
        Ok(result?.into_iter().map(from_delta).collect())
    }

    async fn finish(
        &mut self,
        handle: Resource<StreamHandle>,
    ) -> Result<llm::Completion, ImportError> {
        let StreamHandle { stream, history } = stream_of(self.table.get_mut(&handle))?;
        self.cpu.leave_guest();
        let result = stream.finish().await;
        let history = history.clone();
        self.cpu.enter_guest();
        let gate = self.gate(STREAM)?;
        Ok(self.convert_completion(&gate, result?, history.as_deref()).await)
    }

    async fn drop(&mut self, handle: Resource<StreamHandle>) -> wasmtime::Result<()> {
        self.table.delete(handle)?;
        Ok(())
    }
}

fn stream_of(
    held: Result<&mut StreamHandle, ResourceTableError>,
) -> Result<&mut StreamHandle, Failure> {
    held.map_err(|error| {
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
