//! Servers that hold a call open and ask a person.

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
use wattle_run::ports::lease::Leased;
use wattle_run::ports::tool_server::{Round, ServerAnswer, ServerCall};

use crate::support::{
    NAME, Request, SOON, call, call_within, caller, greeting, list, names, over_http, played, read,
    respond, servers, text,
};

/// A program that asks in each call but one, and says whether it booked. `FAILED` stands for how it ends a call in
/// which nobody was asked.
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

/// A program that says so in its result.
const REFUSED: &str =
    r#""result":{"content":[{"type":"text","text":"not booked"}],"isError":true}"#;

/// A program that fails with it.
const FAILED: &str = r#""error":{"code":-32603,"message":"not booked"}"#;

/// A program that counts its calls, and asks in the second.
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

/// A call in which a person can be asked.
pub(crate) struct Talk<'a> {
    servers: &'a McpServers,
    thread: ThreadId,
    /// What the call and its answers may leave under.
    pub(crate) leased: Leased,
    request: ToolRequest,
    rounds: Vec<Round>,
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
        let (thread, leased) = (ThreadId::new("t").unwrap(), Leased::default());
        Self { servers, thread, leased, request, rounds: Vec::new() }
    }

    fn as_call(&self) -> ServerCall<'_> {
        let Self { thread, leased, request, rounds, .. } = self;
        ServerCall { request, thread: Some(thread), leased, rounds }
    }

    /// Makes the call.
    async fn begun(&self) -> ServerAnswer {
        self.servers.call(&caller(), NAME, self.as_call()).await.unwrap()
    }

    /// Makes the call, in which the server asks.
    pub(crate) async fn asked(&self) -> Elicitation {
        match self.begun().await {
            ServerAnswer::Asks(asked) => asked,
            ServerAnswer::Done(output) => panic!("{output:?}"),
        }
    }

    /// Goes on with an answer; what the tool says, unless its call is gone.
    pub(crate) async fn answer(
        &mut self,
        asked: Elicitation,
        action: &str,
    ) -> Result<Option<String>, Failure> {
        let answer = json!({ "action": action, "content": {} });
        let answers = asked.questions.keys().map(|name| (name.clone(), answer.clone()));
        let answers: BTreeMap<String, Value> = answers.collect();
        self.rounds.push(Round { question: asked, answers });
        let gone_on = self.servers.go_on(&caller(), NAME, self.as_call()).await?;
        Ok(gone_on.map(|answer| match answer {
            ServerAnswer::Done(output) => text(&output),
            ServerAnswer::Asks(asked) => panic!("{asked:?}"),
        }))
    }
}

fn message(asked: &Elicitation) -> &str {
    &asked.questions.values().next().unwrap().message
}

#[tokio::test]
async fn a_call_is_held_until_it_is_answered_or_let_go_of() {
    let folder = tempfile::tempdir().unwrap();
    let servers = desk(folder.path(), REFUSED);
    let mut talk = Talk::new(&servers, json!({}));
    let asked = talk.asked().await;
    assert_eq!(message(&asked), "Sure?");
    assert_eq!(talk.answer(asked, "accept").await.unwrap().as_deref(), Some("booked"));
    let mut talk = Talk::new(&servers, json!({}));
    let asked = talk.asked().await;
    servers.release(&talk.thread, asked.held.as_deref().unwrap());
    assert_eq!(talk.answer(asked, "accept").await.unwrap(), None);
    let mut talk = Talk::new(&servers, json!({}));
    let asked = talk.asked().await;
    timeout(SOON, servers.close()).await.unwrap();
    assert_eq!(talk.answer(asked, "accept").await.unwrap(), None);
}

/// What a program knows of earlier calls would be gone with its process.
#[tokio::test]
async fn calls_before_and_after_a_question_are_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let servers = played(folder.path(), COUNTING);
    assert_eq!(text(&call(&servers, "book", json!({})).await.unwrap()), "first");
    let mut talk = Talk::new(&servers, json!({}));
    let asked = talk.asked().await;
    // A list is no call, and needs no session of its own.
    assert_eq!(names(&servers).await, ["book"]);
    assert_eq!(talk.answer(asked, "accept").await.unwrap().as_deref(), Some("second"));
    assert_eq!(text(&call(&servers, "book", json!({})).await.unwrap()), "third");
    servers.close().await;
}

/// A program that handles one message at a time answers nothing else while it waits for a person.
#[tokio::test]
async fn no_list_is_asked_for_in_a_session_that_is_left_to_a_call() {
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
async fn where_nobody_can_be_asked_the_server_is_told_and_ends_its_call() {
    let folder = tempfile::tempdir().unwrap();
    let told = call(&desk(folder.path(), REFUSED), "book", json!({})).await.unwrap();
    assert_eq!((text(&told).as_str(), told.is_error), ("not booked", true));
    let failed = call(&desk(folder.path(), FAILED), "book", json!({})).await.unwrap_err();
    assert_eq!(failed.code, code::UNSUPPORTED);
    assert!(failed.message.contains("which a web handler cannot"), "{failed}");
}

#[tokio::test]
async fn no_call_gets_the_question_of_one_that_was_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let servers = desk(folder.path(), REFUSED);
    names(&servers).await;
    let given_up = call_within(&servers, "book", json!({ "n": 0 }), Some(200)).await.unwrap_err();
    assert_eq!(given_up.code, code::TIMEOUT);
    // Whose question it is cannot be known.
    let talk = Talk::new(&servers, json!({ "n": 1 }));
    match talk.begun().await {
        ServerAnswer::Done(output) => assert_eq!(text(&output), "not booked"),
        ServerAnswer::Asks(asked) => panic!("{asked:?}"),
    }
    // From now on each call has a session of its own, also beside others.
    let mut talks: Vec<Talk<'_>> = (1..4).map(|n| Talk::new(&servers, json!({ "n": n }))).collect();
    let asked = join_all(talks.iter().map(Talk::asked)).await;
    for (talk, asked) in talks.iter_mut().zip(asked) {
        assert_eq!(talk.answer(asked, "accept").await.unwrap().as_deref(), Some("booked"));
    }
    servers.close().await;
}

/// A program that ends while its question is open. The client answers a ping once it has read what came before.
const DYING: &str = r#">>> tools/call
<<<

{"jsonrpc":"2.0","id":"e1","method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}
{"jsonrpc":"2.0","id":"p1","method":"ping"}
>>> answer
<<<

~~~ exit
"#;

/// The library closes the session of a program for seconds.
#[tokio::test]
async fn an_answer_for_a_program_that_has_ended_is_for_nobody() {
    let (log, _guard) = Log::start();
    let folder = tempfile::tempdir().unwrap();
    let servers = played(folder.path(), DYING);
    let mut talk = Talk::new(&servers, json!({}));
    let asked = talk.asked().await;
    timeout(SOON, log.line("input stream terminated")).await.unwrap();
    assert_eq!(talk.answer(asked, "accept").await.unwrap(), None);
}

/// What the connections of a server have in common.
struct Desk {
    address: SocketAddr,
    /// Takes connections.
    accepting: Mutex<Option<JoinHandle<()>>>,
    /// The session that it knows.
    session: Mutex<&'static str>,
    /// Told when a call is there that gets no answer.
    silent: Notify,
    /// Where answers to questions go, by the ids of the questions.
    answers: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    /// All calls in which it asks.
    all: Barrier,
    /// Questions for the stream beside the calls, if it asks there.
    questions: Option<mpsc::UnboundedSender<String>>,
    stream: Mutex<Option<mpsc::UnboundedReceiver<String>>>,
}

/// A server with sessions over HTTP, which asks when so many calls are there, and tells what the person did. It asks
/// in the stream of the answer to a call, or in one beside all calls.
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

/// Takes no further connection. Those that there are stay.
async fn close(desk: &Desk) {
    let accepting = desk.accepting.lock().unwrap().take().unwrap();
    accepting.abort();
    accepting.await.unwrap_err();
}

/// Who calls and gets no answer.
const SILENT: &str = "silent";

pub(crate) const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

async fn serve(socket: TcpStream, desk: Arc<Desk>) {
    let Request { method, session, body: request, mut socket, .. } = read(socket).await;
    let known = *desk.session.lock().unwrap();
    let (status, document) = match greeting(&request) {
        _ if !session.is_empty() && session != known => ("404 Not Found", Value::Null),
        Some(said) => said,
        None if request["method"] == "tools/call" => return ask(&mut socket, &request, &desk).await,
        None if request.is_null() => {
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
            let id = request["id"].as_str().unwrap_or_default();
            let waiting = desk.answers.lock().unwrap().remove(id);
            waiting.unwrap().send(request["result"].clone()).unwrap();
            ("202 Accepted", Value::Null)
        }
    };
    respond(&mut socket, status, &format!("mcp-session-id: {known}\r\n"), &document).await;
}

/// Asks, and waits.
async fn ask(socket: &mut TcpStream, request: &Value, desk: &Desk) {
    let who = request["params"]["arguments"]["who"].as_str().unwrap().to_owned();
    socket.write_all(EVENTS.as_bytes()).await.unwrap();
    if who == SILENT {
        desk.silent.notify_one();
        // Until the client leaves.
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
async fn over_http_each_question_goes_to_its_call() {
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
async fn an_answer_is_sent_again_to_a_server_that_cannot_be_reached() {
    let (log, _guard) = Log::start();
    let (servers, desk) = desk_over_http(1, false).await;
    let mut talk = Talk::new(&servers, json!({ "who": "a" }));
    let asked = timeout(SOON, talk.asked()).await.unwrap();
    close(&desk).await;
    let reachable = async {
        log.line("an answer to an MCP server is sent again").await;
        open(&desk, TcpListener::bind(desk.address).await.unwrap());
    };
    let both = async { tokio::join!(talk.answer(asked, "accept"), reachable) };
    let (told, ()) = timeout(SOON, both).await.unwrap();
    assert_eq!(told.unwrap().as_deref(), Some("accept"));
}

/// When a server forgets a session, `rmcp` opens a new one and fails the requests of the old one.
#[tokio::test]
async fn calls_of_a_session_that_the_server_forgets_are_in_doubt() {
    let (servers, desk) = desk_over_http(1, false).await;
    let mut talk = Talk::new(&servers, json!({ "who": "a" }));
    let asked = timeout(SOON, talk.asked()).await.unwrap();
    let silent = call(&servers, "book", json!({ "who": SILENT }));
    let others = async {
        desk.silent.notified().await;
        *desk.session.lock().unwrap() = "s-2";
        let told = call(&servers, "book", json!({ "who": "b" })).await.unwrap();
        assert_eq!(text(&told), "refused", "nobody can be asked in it");
    };
    let (cut, ()) = timeout(SOON, async { tokio::join!(silent, others) }).await.unwrap();
    let cut = cut.unwrap_err();
    assert_eq!(cut.code, code::IN_DOUBT, "{cut}");
    assert_eq!(talk.answer(asked, "accept").await.unwrap(), None);
}

/// The host has no reason yet to give each call a session of its own.
#[tokio::test]
async fn of_two_first_questions_beside_the_calls_one_is_asked_when_the_other_call_has_ended() {
    let (servers, _) = desk_over_http(2, true).await;
    names(&servers).await;
    let mut talks: Vec<Talk<'_>> =
        ["a", "b"].map(|who| Talk::new(&servers, json!({ "who": who }))).into();
    let begun = timeout(SOON, join_all(talks.iter().map(Talk::begun))).await.unwrap();
    let mut told = Vec::new();
    for (talk, begun) in talks.iter_mut().zip(begun) {
        told.push(match begun {
            ServerAnswer::Done(output) => text(&output),
            ServerAnswer::Asks(asked) => talk.answer(asked, "accept").await.unwrap().unwrap(),
        });
    }
    told.sort();
    assert_eq!(told, ["accept", "refused"]);
}
