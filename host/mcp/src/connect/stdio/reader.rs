//! Reads the standard output and the standard error of a process, both at a bounded rate.

use rmcp::RoleClient;
use rmcp::service::RxJsonRpcMessage;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::sync::mpsc;
use tracing::Level;
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::json::bounded::{JsonError, JsonLimit};
use wattle_run::limit::SERVICE_CHUNK_BYTES;
use wattle_run::service_memory::{ResponseMemory, ServiceMemory};

use crate::calls::Calls;
use crate::connect::MAX_MESSAGE_BYTES;
use crate::normalize::{self, Normalizer};
use crate::pace::Pace;
use crate::sanitizer::Sanitizer;
use crate::unreadable::MessageLimit;

/// Longest line of the standard error that is logged as one line.
const MAX_LINE_BYTES: u64 = 4096;

/// Parses and normalizes messages, and forwards them to the session. A message counts as `memory`
/// until the session has it. Lines that are not messages are logged, because many servers also print
/// other text to their standard output. A message that exceeds a limit ends the session of `calls`,
/// since it is unknown to which request the message responds.
pub(super) async fn forward_messages(
    output: impl AsyncRead + Unpin,
    to: mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
    normalizer: Normalizer,
    calls: Calls,
    memory: ServiceMemory,
) {
    let sanitizer = normalizer.sanitizer();
    let server = sanitizer.server_name();
    let mut output = BufReader::new(output);
    let mut pace = Pace::new();
    loop {
        let mut held = memory.response(sanitizer.work_owner());
        let line = match read_line(&mut output, &mut held).await {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(exceeded) => {
                tracing::warn!(server, "a message of an MCP server cannot be read: {exceeded}");
                return calls.end_session(exceeded);
            }
        };
        pace.consume(line.len()).await;
        let (owner, is_long) = (sanitizer.work_owner(), is_long_parse(line.len()));
        match block_in_place_in_turn(owner, is_long, || parse_line(&normalizer, &line)).await {
            Ok(Some(messages)) => {
                for (number, message) in messages.into_iter().enumerate() {
                    if number > 0 {
                        pace.consume(0).await;
                    }
                    if to.send(message).await.is_err() {
                        return;
                    }
                }
            }
            Ok(None) => sanitizer.log(Level::INFO, &String::from_utf8_lossy(&line)),
            Err(exceeded) => {
                tracing::warn!(server, "a message of an MCP server cannot be read: {exceeded}");
                return calls.end_session(exceeded.into());
            }
        }
    }
}

/// Reads a line, which counts as `memory`. Returns `None` at the end of the stream.
async fn read_line(
    output: &mut (impl AsyncBufRead + Unpin),
    memory: &mut ResponseMemory,
) -> Result<Option<Vec<u8>>, MessageLimit> {
    let mut line = Vec::new();
    while line.len() < MAX_MESSAGE_BYTES {
        let most = SERVICE_CHUNK_BYTES.min((MAX_MESSAGE_BYTES - line.len()) as u64);
        let read = (&mut *output).take(most).read_until(b'\n', &mut line).await;
        match read {
            Ok(read) if read > 0 => {}
            // The last line may have no line break.
            Ok(_) if !line.is_empty() => return Ok(Some(line)),
            _ => return Ok(None),
        }
        memory.set(line.len() as u64)?;
        if line.last() == Some(&b'\n') {
            return Ok(Some(line));
        }
    }
    Err(MessageLimit::Bytes(MAX_MESSAGE_BYTES))
}

/// Parses and normalizes the messages of a line. Returns `None` if the line is not a message.
/// Messages that the protocol does not define are omitted.
fn parse_line(
    normalizer: &Normalizer,
    line: &[u8],
) -> Result<Option<Vec<RxJsonRpcMessage<RoleClient>>>, JsonLimit> {
    let document = match normalizer.parse(line) {
        Ok(document) => document,
        Err(JsonError::Syntax(_)) => return Ok(None),
        Err(JsonError::Limit(exceeded)) => return Err(exceeded),
    };
    let server = normalizer.sanitizer().server_name();
    let parse = |mut message: Value| {
        normalizer.normalize(&mut message);
        let parsed = serde_json::from_value(message);
        parsed.inspect_err(|error| tracing::debug!(server, %error, "unknown message")).ok()
    };
    let messages = normalize::split_messages(document);
    Ok(messages.map(|messages| messages.into_iter().filter_map(parse).collect()))
}

/// Logs the standard error of the process until its end.
pub(super) async fn forward_stderr(complaints: impl AsyncRead + Unpin, sanitizer: Sanitizer) {
    let mut complaints = BufReader::new(complaints);
    let mut pace = Pace::new();
    loop {
        let mut line = Vec::new();
        match (&mut complaints).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(read) if read > 0 => sanitizer.log(Level::INFO, &String::from_utf8_lossy(&line)),
            _ => return,
        }
        pace.consume(line.len()).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use wattle_kit::log::Log;
    use wattle_run::meter::WorkOwner;

    use super::*;
    use crate::unreadable::ResponseTo;

    /// Short lines that take two seconds at the sustained rate, after the burst.
    const LINES: usize = 50_000;

    /// Returns the number of messages that a line forwards, repeated, and the seconds it takes.
    async fn forwarded(line: &str, times: usize) -> (usize, u64) {
        let (flood, began) = (line.repeat(times), Instant::now());
        let (to, mut messages) = mpsc::channel(1);
        let count = async {
            let mut count = 0;
            while messages.recv().await.is_some() {
                count += 1;
            }
            count
        };
        let (calls, memory) = (Calls::default(), ServiceMemory::default());
        let read = forward_messages(flood.as_bytes(), to, Normalizer::new("graph"), calls, memory);
        let ((), count) = tokio::join!(read, count);
        (count, began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn standard_output_is_read_at_a_bounded_rate() {
        let text = "x".repeat(64 << 10);
        let notification = format!(
            "{{\"method\":\"notifications/message\",\"params\":{{\"level\":\"info\",\"data\":\"{text}\"}}}}\n"
        );
        assert_eq!(forwarded(&notification, 768).await, (768, 2));
        let response = format!("{{\"id\":7,\"result\":{{\"text\":\"{text}\"}}}}\n");
        assert_eq!(forwarded(&response, 768).await, (768, 2));
        assert_eq!(forwarded("y\n", LINES).await, (0, 2));
        let ping = r#"{"method":"notifications/tools/list_changed"}"#;
        let batch = format!("[{}]\n", vec![ping; 1_000].join(","));
        assert_eq!(forwarded(&batch, 50).await, (50_000, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn standard_error_is_read_at_a_bounded_rate_and_logged_in_part() {
        let (log, _guard) = Log::start();
        let (flood, began) = ("y\n".repeat(LINES), Instant::now());
        forward_stderr(flood.as_bytes(), "graph".into()).await;
        assert_eq!(began.elapsed().as_secs(), 2);
        let logged = log.lines().into_iter().filter(|line| line.contains("message=y ")).count();
        assert!((1_000..1_100).contains(&logged), "{logged} lines");
    }

    #[tokio::test]
    async fn message_above_a_limit_ends_the_session() {
        let large = "x".repeat(MAX_MESSAGE_BYTES);
        let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
        for (result, limit) in [
            (format!("\"{large}\""), MessageLimit::Bytes(MAX_MESSAGE_BYTES)),
            (deep, MessageLimit::Json(JsonLimit::Depth)),
        ] {
            let text = format!(
                "{{\"id\":1,\"result\":{{\"text\":{result}}}}}\n{{\"id\":2,\"result\":{{}}}}\n"
            );
            let expected = [ResponseTo::OtherRequest, ResponseTo::OnlyCall, ResponseTo::Unknown];
            for (count, response_to) in expected.into_iter().enumerate() {
                let (calls, (to, mut messages)) = (Calls::default(), mpsc::channel(1));
                let _calls: Vec<_> = (0..count).map(|_| calls.register()).collect();
                let normalizer = Normalizer::new("graph");
                let memory = ServiceMemory::default();
                forward_messages(text.as_bytes(), to, normalizer, calls.clone(), memory).await;
                assert!(messages.recv().await.is_none() && calls.connection_lost().is_cancelled());
                let message = calls.unreadable_message().unwrap();
                assert_eq!((message.limit, message.response_to), (limit, response_to));
            }
        }
    }

    #[tokio::test]
    async fn message_holds_memory_until_the_session_has_it() {
        let text = "x".repeat(1 << 20);
        let response = format!("{{\"id\":1,\"result\":{{\"text\":\"{text}\"}}}}\n");
        let (memory, owner) = (ServiceMemory::new(4 << 20), WorkOwner::Server("graph".into()));
        let mut other = memory.response(owner.clone());
        // All that large responses of one server can hold.
        let most = 7 << 18;
        for is_held in [true, false] {
            other.set(if is_held { most } else { 0 }).unwrap();
            let (calls, (to, mut messages)) = (Calls::default(), mpsc::channel(1));
            let (normalizer, shared) = (Normalizer::new("graph"), memory.clone());
            forward_messages(response.as_bytes(), to, normalizer, calls.clone(), shared).await;
            let unreadable = calls.unreadable_message().map(|message| message.limit);
            let is_refused = matches!(unreadable, Some(MessageLimit::Memory(_)));
            assert_eq!((is_refused, messages.recv().await.is_none()), (is_held, is_held));
        }
        other.set(most).expect("the message holds no memory any more");
    }
}
