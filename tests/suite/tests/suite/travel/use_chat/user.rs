//! A user at a chat page in Node: the actions of the user, and what the page shows.
//!
//! The program is `tests/clients/ai-sdk/user.mjs`, and the page is the unmodified `useChat` of one
//! version of AI SDK.

use std::process::Stdio;
use std::time::Duration;
use wattle_kit::needs::{LeftOut, clients};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// The major versions of AI SDK.
pub(super) const MAJORS: [u32; 3] = [5, 6, 7];

/// How long one action may take. The program has a shorter limit, after which it reports what it
/// was waiting for.
const PATIENCE: Duration = Duration::from_secs(90);

/// A user and the program of the page.
pub(super) struct User {
    major: u32,
    actions: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    /// The program ends when the user is dropped.
    _program: Child,
}

impl User {
    /// Starts the program of a user for the application at this address, without an open page.
    pub(super) fn of(major: u32, base: &str) -> Result<Self, LeftOut> {
        let program = clients::bundle(&format!("ai-sdk/{major}"))?;
        let mut command = Command::new("node");
        command.arg(program).arg(base).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.spawn().unwrap();
        Ok(Self {
            major,
            actions: program.stdin.take().unwrap(),
            answers: BufReader::new(program.stdout.take().unwrap()).lines(),
            _program: program,
        })
    }

    /// Opens the page of a session.
    pub(super) async fn open(&mut self, session: &str) -> Seen {
        self.act(&json!({ "do": "open", "session": session })).await
    }

    /// Opens a page that sends nothing but the session and the messages.
    pub(super) async fn open_bare(&mut self, session: &str) -> Seen {
        self.act(&json!({ "do": "open", "session": session, "bare": true })).await
    }

    /// Opens a page that resumes an answer that is in progress.
    pub(super) async fn come_back(&mut self, session: &str) -> Seen {
        self.act(&json!({ "do": "open", "session": session, "resume": true })).await
    }

    /// Closes the page, with its connections.
    pub(super) async fn leave(&mut self) {
        self.act(&json!({ "do": "leave" })).await;
    }

    /// Sends a message.
    pub(super) async fn send(&mut self, text: &str) -> Seen {
        self.act(&json!({ "do": "send", "text": text })).await
    }

    /// Sends a message and waits until the answer is complete.
    pub(super) async fn ask(&mut self, text: &str) -> Seen {
        self.send(text).await;
        self.until("ready").await
    }

    /// Requests the last answer again and waits until it is complete.
    pub(super) async fn ask_again(&mut self) -> Seen {
        self.act(&json!({ "do": "regenerate" })).await;
        self.until("ready").await
    }

    /// Presses the button that stops the answer.
    pub(super) async fn stop(&mut self) -> Seen {
        self.act(&json!({ "do": "stop" })).await
    }

    /// Waits for a status.
    pub(super) async fn until(&mut self, status: &str) -> Seen {
        self.act(&json!({ "do": "wait", "status": status })).await
    }

    /// Waits until the card of a tool in the last message is in this state.
    pub(super) async fn until_tool(&mut self, tool: &str, state: &str) -> Seen {
        self.act(&json!({ "do": "wait", "tool": tool, "state": state })).await
    }

    /// Performs one action and checks that it writes nothing to the console.
    #[expect(clippy::print_stdout, reason = "shows the last action of a failed test")]
    async fn act(&mut self, action: &Value) -> Seen {
        println!("AI SDK {}: {action}", self.major);
        let line = format!("{action}\n");
        self.actions.write_all(line.as_bytes()).await.unwrap();
        let answer = timeout(PATIENCE, self.answers.next_line()).await;
        let answer = answer.expect("the page responds in time").unwrap();
        let seen: Value = serde_json::from_str(&answer.expect("the program is running")).unwrap();
        let trouble = (seen.get("failure"), &seen["complaints"]);
        assert_eq!(trouble, (None, &json!([])), "AI SDK {}, {action}: {seen:#}", self.major);
        Seen(seen)
    }
}

/// The contents of the screen, and the requests of the page since it was opened.
#[derive(Debug)]
pub(super) struct Seen(Value);

impl Seen {
    /// Returns all statuses since the page was opened.
    pub(super) fn statuses(&self) -> Vec<&str> {
        self.list("statuses").iter().filter_map(Value::as_str).collect()
    }

    /// Returns the error that the page shows, or an empty string.
    pub(super) fn error(&self) -> &str {
        self.0["error"].as_str().unwrap_or_default()
    }

    /// Returns all messages.
    pub(super) fn messages(&self) -> &[Value] {
        self.list("messages")
    }

    /// Returns the roles of the messages.
    pub(super) fn roles(&self) -> Vec<&str> {
        self.messages().iter().filter_map(|message| message["role"].as_str()).collect()
    }

    /// Returns the parts of the last message.
    pub(super) fn parts(&self) -> &[Value] {
        let parts = self.messages().last().and_then(|message| message["parts"].as_array());
        parts.map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the cards of tools in the last message, with their states.
    pub(super) fn tools(&self) -> Vec<(&str, &str)> {
        let cards = self.parts().iter().filter(|part| part["type"] == "tool");
        cards.filter_map(|card| Some((card["tool"].as_str()?, card["state"].as_str()?))).collect()
    }

    /// Returns the last card of this tool in the last message.
    pub(super) fn tool(&self, name: &str) -> &Value {
        let card = self.parts().iter().rfind(|part| part["tool"] == name);
        card.unwrap_or_else(|| panic!("no card of `{name}`: {self:#?}"))
    }

    /// Returns the last text of the last message.
    pub(super) fn text(&self) -> &str {
        let text = self.parts().iter().rfind(|part| part["type"] == "text");
        text.and_then(|part| part["text"].as_str()).unwrap_or_default()
    }

    /// Returns the requests of this method and path, as `{method, path, body, status}`.
    pub(super) fn requests(&self, method: &str, path: &str) -> Vec<&Value> {
        let all = self.list("requests").iter();
        all.filter(|request| request["method"] == method && request["path"] == path).collect()
    }

    fn list(&self, name: &str) -> &[Value] {
        self.0[name].as_array().map(Vec::as_slice).unwrap_or_default()
    }
}
