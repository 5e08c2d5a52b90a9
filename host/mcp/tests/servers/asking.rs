//! Servers that send an elicitation during a call and hold the call open.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{self, timeout};
use wattle_graph::elicitation::Elicitation;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;
use wattle_graph::tool::ToolRequest;
use wattle_kit::log::Log;
use wattle_mcp::McpServers;
use wattle_run::ports::ToolServers as _;
use wattle_run::ports::lease::CallLease;
use wattle_run::ports::tool_server::{ElicitationRound, ServerCall, ServerCallResult};

use crate::support::{
    NAME, Request, SOON, call, call_within, caller, greeting, list, names, over_http, played, read,
    respond, servers, text,
};

/// A stdio server that sends an elicitation in every call but one, and reports whether it booked.
/// `FAILED` is replaced by its response to a call whose elicitation was refused.
const DESK: &str = r#">>>* tools/call
/params/arguments/n = 0
<<<

>>>* tools/call
<<<

{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}
>>>* answer
/error/code = -32603
<<<

{"jsonrpc":"2.0","id":$call,FAILED}
>>>* answer
<<<

{"jsonrpc":"2.0","id":$call,"result":{"content":[{"type":"text","text":"booked"}]}}
"#;

/// A response with an error in the result.
const REFUSED: &str =
    r#""result":{"content":[{"type":"text","text":"not booked"}],"isError":true}"#;

/// A response with a JSON-RPC error.
const FAILED: &str = r#""error":{"code":-32603,"message":"not booked"}"#;

/// A stdio server that counts its calls and sends an elicitation in the second one.
const COUNTING: &str = r#">>> tools/call
<<<

{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"first"}]}}
>>> tools/call
<<<

{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}
>>> answer
<<<

{"jsonrpc":"2.0","id":$call,"result":{"content":[{"type":"text","text":"second"}]}}
>>> tools/call
<<<

{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":"third"}]}}
"#;

fn desk(folder: &Path, failed: &str) -> McpServers {
    played(folder, &DESK.replace("FAILED", failed))
}

/// A tool call whose server may send an elicitation.
pub(crate) struct Talk<'a> {
    servers: &'a McpServers,
    thread: ThreadId,
    /// The lease under which the call and its answers are sent.
    pub(crate) lease: CallLease,
    request: ToolRequest,
    rounds: Vec<ElicitationRound>,
}

impl<'a> Talk<'a> {
    pub(crate) fn new(servers: &'a McpServers, arguments: Value) -> Self {
        let request = ToolRequest {
            tool: "book".into(),
            call_id: "call-1".into(),
            arguments,
            timeout_ms: None,
            state: None,
        };
        let (thread, lease) = (ThreadId::new("t").unwrap(), CallLease::default());
        Self { servers, thread, lease, request, rounds: Vec::new() }
    }

    fn as_call(&self) -> ServerCall<'_> {
        let Self { thread, lease, request, rounds, .. } = self;
        ServerCall { request, thread: Some(thread), lease, rounds }
    }

    async fn begun(&self) -> ServerCallResult {
        self.servers.call(&caller(), NAME, self.as_call()).await.unwrap()
    }

    /// Makes the call, which must end with an elicitation.
    pub(crate) async fn asked(&self) -> Elicitation {
        match self.begun().await {
            ServerCallResult::Elicits(asked) => asked,
            ServerCallResult::Returned(output) => panic!("{output:?}"),
        }
    }

    /// Continues the call with an answer. Returns the text of the tool; `None` if the host cannot
    /// continue the call any more.
    pub(crate) async fn answer(
        &mut self,
        elicitation: Elicitation,
        action: &str,
    ) -> Result<Option<String>, Failure> {
        let answer = json!({ "action": action, "content": {} });
        let answers = elicitation.questions.keys().map(|name| (name.clone(), answer.clone()));
        let answers: BTreeMap<String, Value> = answers.collect();
        self.rounds.push(ElicitationRound { elicitation, answers });
        let gone_on = self.servers.continue_call(&caller(), NAME, self.as_call()).await?;
        Ok(gone_on.map(|answer| match answer {
            ServerCallResult::Returned(output) => text(&output),
            ServerCallResult::Elicits(elicitation) => panic!("{elicitation:?}"),
        }))
    }
}

fn message(asked: &Elicitation) -> &str {
    &asked.questions.values().next().unwrap().message
}

#[tokio::test]
async fn call_is_held_until_answered_or_released() {
    let folder = tempfile::tempdir().unwrap();
    let servers = desk(folder.path(), REFUSED);
    let mut talk = Talk::new(&servers, json!({}));
    let asked = talk.asked().await;
    assert_eq!(message(&asked), "Sure?");
    assert_eq!(talk.answer(asked, "accept").await.unwrap().as_deref(), Some("booked"));
    let mut talk = Talk::new(&servers, json!({}));
    let asked = talk.asked().await;
    servers.release_call(&talk.thread, asked.held.as_deref().unwrap());
    assert_eq!(talk.answer(asked, "accept").await.unwrap(), None);
    let mut talk = Talk::new(&servers, json!({}));
    let asked = talk.asked().await;
    timeout(SOON, servers.close()).await.unwrap();
    assert_eq!(talk.answer(asked, "accept").await.unwrap(), None);
}

/// The state that a stdio server keeps between calls is lost with its process.
#[tokio::test]
async fn calls_before_and_after_an_elicitation_share_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let servers = played(folder.path(), COUNTING);
    assert_eq!(text(&call(&servers, "book", json!({})).await.unwrap()), "first");
    let mut talk = Talk::new(&servers, json!({}));
    let asked = talk.asked().await;
    // The request for a tool list needs no separate session.
    assert_eq!(names(&servers).await, ["book"]);
    assert_eq!(talk.answer(asked, "accept").await.unwrap().as_deref(), Some("second"));
    assert_eq!(text(&call(&servers, "book", json!({})).await.unwrap()), "third");
    servers.close().await;
}

/// A server that handles one message at a time responds to nothing else while it waits for an
/// answer.
#[tokio::test]
async fn tool_list_is_not_requested_on_a_reserved_session() {
    let folder = tempfile::tempdir().unwrap();
    let servers = desk(folder.path(), REFUSED);
    names(&servers).await;
    let mut talk = Talk::new(&servers, json!({}));
    let asked = talk.asked().await;
    time::pause();
    time::advance(Duration::from_hours(2)).await;
    time::resume();
    let kept = list(&servers).now_or_never().expect("a list from memory").unwrap();
    assert_eq!(kept[0].name, "book");
    assert_eq!(talk.answer(asked, "accept").await.unwrap().as_deref(), Some("booked"));
}

#[tokio::test]
async fn elicitation_without_a_thread_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let told = call(&desk(folder.path(), REFUSED), "book", json!({})).await.unwrap();
    assert_eq!((text(&told).as_str(), told.is_error), ("not booked", true));
    let failed = call(&desk(folder.path(), FAILED), "book", json!({})).await.unwrap_err();
    assert_eq!(failed.code, code::UNSUPPORTED);
    assert!(failed.message.contains("which a web handler cannot"), "{failed}");
}

#[tokio::test]
async fn elicitation_of_a_cancelled_call_reaches_no_other_call() {
    let folder = tempfile::tempdir().unwrap();
    let servers = desk(folder.path(), REFUSED);
    names(&servers).await;
    let given_up = call_within(&servers, "book", json!({ "n": 0 }), Some(200)).await.unwrap_err();
    assert_eq!(given_up.code, code::TIMEOUT);
    // The elicitation may belong to either call.
    let talk = Talk::new(&servers, json!({ "n": 1 }));
    match talk.begun().await {
        ServerCallResult::Returned(output) => assert_eq!(text(&output), "not booked"),
        ServerCallResult::Elicits(asked) => panic!("{asked:?}"),
    }
    // From now on every call gets a separate session, even with others in progress.
    let mut talks: Vec<Talk<'_>> = (1..4).map(|n| Talk::new(&servers, json!({ "n": n }))).collect();
    let asked = join_all(talks.iter().map(Talk::asked)).await;
    for (talk, asked) in talks.iter_mut().zip(asked) {
        assert_eq!(talk.answer(asked, "accept").await.unwrap().as_deref(), Some("booked"));
    }
    servers.close().await;
}

/// A stdio server that exits while its elicitation is unanswered. The client responds to a ping
/// only after it has handled all earlier messages.
const DYING: &str = r#">>> tools/call
<<<

{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}
{"jsonrpc":"2.0","id":"p1","method":"ping"}
>>> answer
<<<

~~~ exit
"#;

/// `rmcp` takes seconds to close the session of a process.
#[tokio::test]
async fn answer_to_an_exited_process_is_not_delivered() {
    let (log, _guard) = Log::start();
    let folder = tempfile::tempdir().unwrap();
    let servers = played(folder.path(), DYING);
    let mut talk = Talk::new(&servers, json!({}));
    let asked = talk.asked().await;
    timeout(SOON, log.line("input stream terminated")).await.unwrap();
    assert_eq!(talk.answer(asked, "accept").await.unwrap(), None);
}

/// A stdio server that sends two elicitations in one call before either has an answer.
const TWICE: &str = r#">>> tools/call
<<<

{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}
{"jsonrpc":"2.0","id":"e2","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}
>>> answer
/error/code = -32603
/error/message ~ "an earlier elicitation of its call is unanswered"
<<<

>>> answer
/result/action = "accept"
<<<

{"jsonrpc":"2.0","id":$call,"result":{"content":[{"type":"text","text":"booked"}]}}
"#;

/// The second elicitation is refused if it arrives before the answer to the first one, so the answer
/// waits for the refusal.
#[tokio::test]
async fn second_elicitation_before_an_answer_is_refused() {
    let (log, _guard) = Log::start();
    let folder = tempfile::tempdir().unwrap();
    let servers = played(folder.path(), TWICE);
    let mut talk = Talk::new(&servers, json!({}));
    let asked = talk.asked().await;
    timeout(SOON, log.line("an earlier elicitation of its call is unanswered")).await.unwrap();
    assert_eq!(talk.answer(asked, "accept").await.unwrap().as_deref(), Some("booked"));
    servers.close().await;
}

/// State that the connections of a server share.
struct Desk {
    address: SocketAddr,
    /// Task that accepts connections.
    accepting: Mutex<Option<JoinHandle<()>>>,
    /// The valid session id.
    session: Mutex<&'static str>,
    /// Notified when a call with the argument [`SILENT`] arrives, which gets no response.
    silent: Notify,
    /// Senders of answers, by the id of the elicitation.
    answers: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    /// Barrier at which all calls that send an elicitation wait for one another.
    all: Barrier,
    /// Elicitations for the standalone event stream, if the server uses it.
    questions: Option<mpsc::UnboundedSender<String>>,
    stream: Mutex<Option<mpsc::UnboundedReceiver<String>>>,
}

/// Starts a server over HTTP with sessions. The server sends its elicitations once `calls` calls
/// have arrived, in the responses to the calls or in the standalone stream (`asks_beside`). The
/// result of a call is the action of the answer.
async fn desk_over_http(calls: usize, asks_beside: bool) -> (McpServers, Arc<Desk>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (questions, stream) = mpsc::unbounded_channel();
    let desk = Arc::new(Desk {
        address,
        accepting: Mutex::default(),
        session: Mutex::new("s-1"),
        silent: Notify::new(),
        answers: Mutex::default(),
        all: Barrier::new(calls),
        questions: asks_beside.then_some(questions),
        stream: Mutex::new(asks_beside.then_some(stream)),
    });
    open(&desk, listener);
    (servers(over_http(&format!("http://{address}/mcp"))), desk)
}

fn open(desk: &Arc<Desk>, listener: TcpListener) {
    let shared = desk.clone();
    let accepting = tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, shared.clone()));
        }
    });
    *desk.accepting.lock().unwrap() = Some(accepting);
}

/// Stops accepting connections and keeps the open connections.
async fn close(desk: &Desk) {
    let accepting = desk.accepting.lock().unwrap().take().unwrap();
    accepting.abort();
    accepting.await.unwrap_err();
}

/// Argument of a call without a response.
const SILENT: &str = "silent";

pub(crate) const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

async fn serve(socket: TcpStream, desk: Arc<Desk>) {
    let Request { method, session, body, mut socket, .. } = read(socket).await;
    let known = *desk.session.lock().unwrap();
    let (status, document) = match greeting(&body) {
        _ if !session.is_empty() && session != known => ("404 Not Found", Value::Null),
        Some(said) => said,
        None if body["method"] == "tools/call" => {
            return ask(&mut socket, &body, &desk).await;
        }
        None if body.is_null() => {
            let stream = desk.stream.lock().unwrap().take_if(|_| method == "GET");
            if let Some(mut questions) = stream {
                socket.write_all(EVENTS.as_bytes()).await.unwrap();
                while let Some(question) = questions.recv().await {
                    socket.write_all(question.as_bytes()).await.unwrap();
                }
                return;
            }
            ("405 Method Not Allowed", Value::Null)
        }
        None => {
            let id = body["id"].as_str().unwrap_or_default();
            let waiting = desk.answers.lock().unwrap().remove(id);
            waiting.unwrap().send(body["result"].clone()).unwrap();
            ("202 Accepted", Value::Null)
        }
    };
    respond(&mut socket, status, &format!("mcp-session-id: {known}\r\n"), &document).await;
}

/// Sends an elicitation and responds with the action of the answer.
async fn ask(socket: &mut TcpStream, request: &Value, desk: &Desk) {
    let who = request["params"]["arguments"]["who"].as_str().unwrap().to_owned();
    socket.write_all(EVENTS.as_bytes()).await.unwrap();
    if who == SILENT {
        desk.silent.notify_one();
        // Reads until the client disconnects.
        socket.read_to_end(&mut Vec::new()).await.ok();
        return;
    }
    let (tell, answer) = oneshot::channel();
    desk.answers.lock().unwrap().insert(who.clone(), tell);
    desk.all.wait().await;
    let schema = json!({ "type": "object", "properties": {} });
    let question = json!({ "jsonrpc": "2.0", "id": who, "method": "elicitation/create",
        "params": { "message": format!("{who}?"), "requestedSchema": schema } });
    let question = format!("data: {question}\n\n");
    match &desk.questions {
        Some(questions) => questions.send(question).unwrap(),
        None => socket.write_all(question.as_bytes()).await.unwrap(),
    }
    let answer = answer.await.unwrap();
    let said = answer["action"].as_str().unwrap_or("refused");
    let block = json!({ "type": "text", "text": said });
    let done = json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "content": [block] } });
    socket.write_all(format!("data: {done}\n\n").as_bytes()).await.ok();
}

#[tokio::test]
async fn http_elicitations_reach_their_calls() {
    let (servers, _) = desk_over_http(2, false).await;
    names(&servers).await;
    let mut talks: Vec<Talk<'_>> =
        ["a", "b"].map(|who| Talk::new(&servers, json!({ "who": who }))).into();
    let asked = timeout(SOON, join_all(talks.iter().map(Talk::asked))).await.unwrap();
    for ((talk, asked), (text, action)) in
        talks.iter_mut().zip(asked).zip([("a?", "accept"), ("b?", "decline")])
    {
        assert_eq!(message(&asked), text);
        assert_eq!(talk.answer(asked, action).await.unwrap().as_deref(), Some(action));
    }
}

#[tokio::test]
async fn answer_is_retried_until_the_server_is_reachable() {
    let (log, _guard) = Log::start();
    let (servers, desk) = desk_over_http(1, false).await;
    let mut talk = Talk::new(&servers, json!({ "who": "a" }));
    let asked = timeout(SOON, talk.asked()).await.unwrap();
    close(&desk).await;
    let reachable = async {
        log.line("sending an elicitation answer again").await;
        open(&desk, TcpListener::bind(desk.address).await.unwrap());
    };
    let both = async { tokio::join!(talk.answer(asked, "accept"), reachable) };
    let (told, ()) = timeout(SOON, both).await.unwrap();
    assert_eq!(told.unwrap().as_deref(), Some("accept"));
}

/// If a server loses a session, `rmcp` opens a new one and fails the requests of the old session.
#[tokio::test]
async fn calls_of_a_lost_session_are_in_doubt() {
    let (servers, desk) = desk_over_http(1, false).await;
    let mut talk = Talk::new(&servers, json!({ "who": "a" }));
    let asked = timeout(SOON, talk.asked()).await.unwrap();
    let silent = call(&servers, "book", json!({ "who": SILENT }));
    let others = async {
        desk.silent.notified().await;
        *desk.session.lock().unwrap() = "s-2";
        let told = call(&servers, "book", json!({ "who": "b" })).await.unwrap();
        assert_eq!(text(&told), "refused", "the call has no thread");
    };
    let (cut, ()) = timeout(SOON, async { tokio::join!(silent, others) }).await.unwrap();
    let cut = cut.unwrap_err();
    assert_eq!(cut.code, code::IN_DOUBT, "{cut}");
    assert_eq!(talk.answer(asked, "accept").await.unwrap(), None);
}

/// The host does not know yet that elicitations of this server do not identify their call, so both
/// calls share a session.
#[tokio::test]
async fn one_of_two_unassigned_elicitations_is_refused() {
    let (servers, _) = desk_over_http(2, true).await;
    names(&servers).await;
    let mut talks: Vec<Talk<'_>> =
        ["a", "b"].map(|who| Talk::new(&servers, json!({ "who": who }))).into();
    let begun = timeout(SOON, join_all(talks.iter().map(Talk::begun))).await.unwrap();
    let mut told = Vec::new();
    for (talk, begun) in talks.iter_mut().zip(begun) {
        told.push(match begun {
            ServerCallResult::Returned(output) => text(&output),
            ServerCallResult::Elicits(asked) => {
                talk.answer(asked, "accept").await.unwrap().unwrap()
            }
        });
    }
    told.sort();
    assert_eq!(told, ["accept", "refused"]);
}
