//! Tests of a guide that is interrupted at any of its requests and continues: no finished step is
//! repeated, no request is paid for twice, and the page equals that of an uninterrupted guide.

mod cancel;
mod google;
mod kill;
mod leave;
mod services;
mod talk;

use serde_json::{Value, json};
use wattle_kit::standin::{Entry, Fault, FaultRule, Outcome, Pattern};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::travel::{APIFY, CHAT_MODEL, GOOGLE, TOKYO, UNSPLASH};

/// The message that requests a guide with photographs.
const SEARCHED: &str = TOKYO;

/// The message that requests a guide of the same video with generated pictures.
const GENERATED: &str = "A guide with 2 AI pictures of https://www.youtube.com/watch?v=dQw4w9WgXcQ";

/// The message after an interruption.
const CONTINUE: &str = "continue";

/// The message after an interruption for generated pictures.
const CONTINUE_GENERATED: &str = "continue with 2 AI pictures";

/// Longer than the geocoder results are cached, so that each guide looks up its places.
const FORGOTTEN_MS: i64 = 100 * 24 * 3_600_000;

/// A guide and all requests that were made for it.
struct Guide {
    page: String,
    /// Tools that succeeded, in order.
    steps: Vec<String>,
    requests: Vec<Entry>,
}

impl Guide {
    fn of(shown: &Value, page: &Value, requests: Vec<Entry>) -> Self {
        let steps = shown["steps"].as_array().unwrap().iter();
        let done = steps.filter(|step| step["status"] == "SUCCESS");
        let steps = done.map(|step| step["toolName"].as_str().unwrap().to_owned()).collect();
        Self { page: page.as_str().unwrap().to_owned(), steps, requests }
    }

    /// Returns the numbers of the requests at which a guide is interrupted: the first and the last to
    /// each service. What is between them continues like the last. [`leave`] has the turns.
    fn places(&self) -> Vec<usize> {
        let services: Vec<&str> = self.requests.iter().map(|it| service(&it.path)).collect();
        let is_edge = |number: &usize| {
            let own = services[*number];
            let first = services.iter().position(|it| *it == own);
            let last = services.iter().rposition(|it| *it == own);
            [first, last].contains(&Some(*number))
        };
        (0..services.len()).filter(is_edge).collect()
    }

    /// Returns those numbers that follow the turn that requests pictures.
    fn places_of_pictures(&self) -> Vec<usize> {
        let first = self.turn_of_pictures();
        self.places().into_iter().filter(|number| *number >= first).collect()
    }

    /// Returns the number of tools before the one for pictures.
    fn tools_before_pictures(&self) -> usize {
        let tools = ["search_image", "generate_image"];
        let is_for_pictures = |step: &String| tools.contains(&step.as_str());
        self.steps.iter().position(is_for_pictures).expect("a tool makes the pictures")
    }

    /// Returns the number of the request whose completion calls a tool for pictures. Each turn of
    /// the conversation calls one tool.
    fn turn_of_pictures(&self) -> usize {
        let mut turns = self.requests.iter().enumerate().filter(|(_, it)| it.path == CHAT_MODEL);
        turns.nth(self.tools_before_pictures()).expect("each tool has a turn").0
    }

    /// Returns the requests to services before pictures are requested. Requests of the conversation
    /// are represented by their path, because they contain the message of the user.
    fn before_pictures(&self) -> Vec<String> {
        let asked = |it: &Entry| match it.path.as_str() {
            CHAT_MODEL => it.path.clone(),
            path => format!("{path} {}", body(it)),
        };
        self.requests[..self.turn_of_pictures()].iter().map(asked).collect()
    }

    /// Compares an interrupted guide with this one, which was not interrupted. `cut` describes the
    /// interruption.
    fn check(&self, other: &Self, cut: &str) {
        assert_eq!(other.steps, self.steps, "{cut}: no finished step is repeated");
        assert!(other.page == self.page, "{cut}: the pages differ:\n{}\n{}", other.page, self.page);
        let (paid, due) = (bought(&other.requests), bought(&self.requests));
        assert_eq!(paid, due, "{cut}: each request is paid for once");
        let mut turns = turns(&other.requests);
        let count = turns.len();
        turns.sort();
        turns.dedup();
        assert_eq!(turns.len(), count, "{cut}: no turn is requested twice");
    }
}

/// Returns the path of a service. Searches of Unsplash and reports of used photographs are one
/// service.
fn service(path: &str) -> &str {
    if path.starts_with("/photos/") { UNSPLASH } else { path }
}

/// Returns whether a service succeeded and its client could read the response.
fn is_served(entry: &Entry) -> bool {
    let is_fine = entry.status.is_some_and(|status| status < 300) && entry.fault.is_none();
    entry.outcome == Outcome::Answered && is_fine
}

/// Returns whether a request costs money and is not a turn of the conversation.
fn is_paid(entry: &Entry) -> bool {
    entry.path == APIFY || entry.path.starts_with(GOOGLE.trim_end_matches('*'))
}

/// Returns the paid requests outside of the conversation, whichever model served them.
fn bought(requests: &[Entry]) -> Vec<String> {
    let served = requests.iter().filter(|it| is_served(it) && is_paid(it));
    let mut bought: Vec<String> = served.map(body).collect();
    bought.sort();
    bought
}

/// Returns the turns of the conversation that were answered.
fn turns(requests: &[Entry]) -> Vec<String> {
    let served = requests.iter().filter(|it| is_served(it) && !it.aborted);
    served.filter(|it| it.path == CHAT_MODEL).map(body).collect()
}

fn body(entry: &Entry) -> String {
    entry.body.as_ref().map(Value::to_string).unwrap_or_default()
}

/// Returns the description of a request for messages.
fn named(number: usize, entry: &Entry) -> String {
    format!("cut at request {number}, {}", entry.path)
}

/// Guides with generated pictures are interrupted only from the turn on that requests the pictures.
#[tokio::test]
async fn guides_differ_from_the_turn_that_requests_pictures() {
    let stage = Stage::new(SEARCHED).await;
    stage.clear();
    let (session, _) = stage.server.travel().make(GENERATED).await;
    let made = guide(&stage.server, &session).await;
    assert_eq!(stage.whole.before_pictures(), made.before_pictures());
    assert_ne!(stage.whole.steps, made.steps);
}

/// A server that makes several guides, the first of which is not interrupted.
struct Stage {
    server: TestServer,
    wish: &'static str,
    whole: Guide,
}

impl Stage {
    async fn new(wish: &'static str) -> Self {
        Self::on(Setup::travel().await, wish).await
    }

    async fn on(setup: Setup, wish: &'static str) -> Self {
        let server = setup.start().await;
        let (session, said) = server.travel().make(wish).await;
        assert!(said.text().contains("is ready"), "{:#?}", said.chunks);
        let whole = guide(&server, &session).await;
        Self { server, wish, whole }
    }

    /// Clears the recorded requests and the faults, and lets the cache of the geocoder expire.
    fn clear(&self) {
        self.server.standin().clear_faults();
        self.server.standin().clear_requests();
        let clock = self.server.clock();
        clock.set_now_ms(wattle_run::ports::Clock::now_ms(clock) + FORGOTTEN_MS);
    }

    /// Holds the request of this number, from 0, among all later requests.
    fn hold(&self, number: usize) {
        let skip = u32::try_from(number).unwrap();
        let rule = FaultRule::new(Pattern::any(), Fault::Hang).skip(skip).times(1);
        self.server.standin().fault(rule);
    }

    /// Waits for the held request.
    async fn held(&self) -> Entry {
        let is_held = |it: &Entry| it.fault.as_deref() == Some("hang");
        self.server.standin().wait_for_request(is_held).await.unwrap()
    }

    /// Sends a message to which a step or the conversation itself fails, and returns the session.
    async fn fail(&self, session: &str, text: &str, step: Option<&str>, case: &str) -> Value {
        let travel = self.server.travel();
        let said = travel.chat(session, text).await;
        let shown = travel.session(session).await;
        let stands = (&shown["status"], &shown["failedStep"]);
        assert_eq!(stands, (&json!("ERROR"), &json!(step)), "{case}: {:#?}", said.chunks);
        assert!(shown["lastError"].is_string(), "{case}: {shown:#}");
        shown
    }

    /// Continues an interrupted guide, and compares it with the uninterrupted one.
    async fn go_on(&self, session: &str, cut: &str) {
        self.whole.check(&self.finish(session, cut).await, cut);
    }

    /// Continues an interrupted guide and returns it.
    async fn finish(&self, session: &str, cut: &str) -> Guide {
        let text = if self.wish == GENERATED { CONTINUE_GENERATED } else { CONTINUE };
        let said = self.server.travel().chat(session, text).await;
        assert!(said.text().contains("is ready"), "{cut}: {:#?}", said.chunks);
        guide(&self.server, session).await
    }
}

/// Returns the guide of a completed session.
async fn guide(server: &TestServer, session: &str) -> Guide {
    let shown = server.travel().session(session).await;
    assert_eq!(shown["status"], "COMPLETED", "{shown:#}");
    let page = server.travel().guide(session).await.expect(200);
    Guide::of(&shown, &page, server.standin().requests())
}

/// Returns an error response that allows an immediate retry, with its name.
fn status(status: u16) -> (String, Fault) {
    let fault = Fault::Status { status, retry_after: Some("0".to_owned()), body: None };
    (format!("status {status}"), fault)
}
