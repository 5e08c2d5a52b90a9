//! Waits for the run of a case until it ends, is interrupted or times out, or until Ctrl-C.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};
use wattle_api::document::run::RunDocument;
use wattle_graph::event::RunStatus;

use crate::cases::ctrl_c::CtrlC;
use crate::client::{Client, encode_segment};
use crate::error::Error;

/// Timeout for the end of a cancelled run. Only a slow store can delay it.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason why a run was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelReason {
    /// The case timed out.
    Timeout,
    /// The user pressed Ctrl-C.
    CtrlC,
}

/// Waits for a run. Cancels it at the deadline or when the user presses Ctrl-C.
pub(crate) async fn wait(
    client: &Client,
    run: &RunDocument,
    deadline: Instant,
    ctrl_c: &CtrlC,
) -> Result<(RunDocument, Option<CancelReason>), Error> {
    let path = format!("/api/v1/runs/{}", encode_segment(&run.run));
    let wait = format!("{path}/wait");
    let cancel_reason = tokio::select! {
        ended = client.get(&wait) => return Ok((ended?, None)),
        () = sleep_until(deadline) => CancelReason::Timeout,
        () = ctrl_c.pressed() => CancelReason::CtrlC,
    };
    client.post_empty(&format!("{path}/cancel"), &json!({})).await?;
    let ended = timeout(CANCEL_TIMEOUT, client.get::<RunDocument>(&wait)).await;
    let ended = ended.map_err(|_| Error::Server {
        address: "the server".to_owned(),
        message: format!(
            "run `{}` did not end within {} s after it was cancelled",
            run.run,
            CANCEL_TIMEOUT.as_secs()
        ),
    })??;
    // The run can end in another way before the cancel request arrives.
    let cancel_reason = (ended.status == RunStatus::Cancelled).then_some(cancel_reason);
    Ok((ended, cancel_reason))
}
