//! A guide that is cut at any of its requests and goes on: no finished step is done again, nothing
//! is paid for twice, and the page is the one of a guide that nobody cut.

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

/// What asks for a guide with photographs.
const SEARCHED: &str = TOKYO;

/// What asks for the same with pictures that are made.
const GENERATED: &str = "A guide with 2 AI pictures of https://www.youtube.com/watch?v=dQw4w9WgXcQ";

/// What is said after a cut.
const CONTINUE: &str = "continue";

/// The same for pictures that are made.
const CONTINUE_GENERATED: &str = "continue with 2 AI pictures";

/// Longer than any answer of the geocoder is remembered: every guide looks its places up.
const FORGOTTEN_MS: i64 = 100 * 24 * 3_600_000;

/// A guide, and all that was asked for it.
struct Guide {
    page: String,
    /// Tools that did their work, in order.
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

    /// The numbers of the requests at which it can be cut. Of several that go out at once, to
    /// the same service, the first and the last stand for all.
    fn places(&self) -> Vec<usize> {
        let path = |number: usize| self.requests.get(number).map(|it| service(&it.path));
        let is_inside = |number: usize| {
            let next = path(number + 1);
            path(number) == Some(UNSPLASH) && path(number - 1) == next && path(number) == next
        };
        (0..self.requests.len()).filter(|number| !is_inside(*number)).collect()
    }

    /// Those of them from the turn on that asks for pictures.
    fn places_of_pictures(&self) -> Vec<usize> {
        let first = self.turn_of_pictures();
        self.places().into_iter().filter(|number| *number >= first).collect()
    }

    /// The number of the request that is answered with the call of a tool for pictures: each turn of
    /// the talk calls one tool.
    fn turn_of_pictures(&self) -> usize {
        let tools = ["search_image", "generate_image"];
        let is_for_pictures = |step: &String| tools.contains(&step.as_str());
        let turn = self.steps.iter().position(is_for_pictures).expect("a tool for pictures");
        let mut turns = self.requests.iter().enumerate().filter(|(_, it)| it.path == CHAT_MODEL);
        turns.nth(turn).expect("a turn for each tool").0
    }

    /// What is asked of services before pictures are; of turns of the talk, which repeat what is
    /// wished for, that they are asked for.
    fn before_pictures(&self) -> Vec<String> {
        let asked = |it: &Entry| match it.path.as_str() {
            CHAT_MODEL => it.path.clone(),
            path => format!("{path} {}", body(it)),
        };
        self.requests[..self.turn_of_pictures()].iter().map(asked).collect()
    }

    /// Holds a guide that was cut against this one, which was not; `cut` names where.
    fn check(&self, other: &Self, cut: &str) {
        assert_eq!(other.steps, self.steps, "{cut}: no finished step is done again");
        assert!(other.page == self.page, "{cut}: another page:\n{}\n{}", other.page, self.page);
        let (paid, due) = (bought(&other.requests), bought(&self.requests));
        assert_eq!(paid, due, "{cut}: each thing is paid for once");
        let mut turns = turns(&other.requests);
        let count = turns.len();
        turns.sort();
        turns.dedup();
        assert_eq!(turns.len(), count, "{cut}: no turn of the talk is asked for twice");
    }
}

/// The path of a service. Searches of Unsplash and reports of used photographs are one service.
fn service(path: &str) -> &str {
    if path.starts_with("/photos/") { UNSPLASH } else { path }
}

/// Whether a service did what it was asked for, and its client could read the answer.
fn is_served(entry: &Entry) -> bool {
    let is_fine = entry.status.is_some_and(|status| status < 300) && entry.fault.is_none();
    entry.outcome == Outcome::Answered && is_fine
}

/// Whether it costs money, and is no turn of the talk.
fn is_paid(entry: &Entry) -> bool {
    entry.path == APIFY || entry.path.starts_with(GOOGLE.trim_end_matches('*'))
}

/// What was paid for beside the talk, whichever model did it.
fn bought(requests: &[Entry]) -> Vec<String> {
    let served = requests.iter().filter(|it| is_served(it) && is_paid(it));
    let mut bought: Vec<String> = served.map(body).collect();
    bought.sort();
    bought
}

/// The turns of the talk that were answered.
fn turns(requests: &[Entry]) -> Vec<String> {
    let served = requests.iter().filter(|it| is_served(it) && !it.aborted);
    served.filter(|it| it.path == CHAT_MODEL).map(body).collect()
}

fn body(entry: &Entry) -> String {
    entry.body.as_ref().map(Value::to_string).unwrap_or_default()
}

/// A request as messages name it.
fn named(number: usize, entry: &Entry) -> String {
    format!("cut at request {number}, {}", entry.path)
}

/// Guides with made pictures are cut only from the turn on that asks for the pictures.
#[tokio::test]
async fn guides_differ_from_the_turn_on_that_asks_for_pictures() {
    let stage = Stage::new(SEARCHED).await;
    stage.clear();
    let (session, _) = stage.server.travel().make(GENERATED).await;
    let made = guide(&stage.server, &session).await;
    assert_eq!(stage.whole.before_pictures(), made.before_pictures());
    assert_ne!(stage.whole.steps, made.steps);
}

/// A server that makes one guide after the other, of which the first is not cut.
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

    /// Forgets what was asked and ordered so far, and what the geocoder answered.
    fn clear(&self) {
        self.server.standin().clear_faults();
        self.server.standin().clear_requests();
        let clock = self.server.clock();
        clock.set_now_ms(wattle_run::ports::Clock::now_ms(clock) + FORGOTTEN_MS);
    }

    /// Holds the request of this number, from 0, of all that will be made.
    fn hold(&self, number: usize) {
        let skip = u32::try_from(number).unwrap();
        let rule = FaultRule::new(Pattern::any(), Fault::Hang).skip(skip).times(1);
        self.server.standin().fault(rule);
    }

    /// Waits for the request that is held.
    async fn held(&self) -> Entry {
        let is_held = |it: &Entry| it.fault.as_deref() == Some("hang");
        self.server.standin().wait_for_request(is_held).await.unwrap()
    }

    /// Says something to which a step or the talk itself fails, and gives the session then.
    async fn fail(&self, session: &str, text: &str, step: Option<&str>, case: &str) -> Value {
        let travel = self.server.travel();
        let said = travel.chat(session, text).await;
        let shown = travel.session(session).await;
        let stands = (&shown["status"], &shown["failedStep"]);
        assert_eq!(stands, (&json!("ERROR"), &json!(step)), "{case}: {:#?}", said.chunks);
        assert!(shown["lastError"].is_string(), "{case}: {shown:#}");
        shown
    }

    /// Goes on with a guide that was cut, and holds it against the whole one.
    async fn go_on(&self, session: &str, cut: &str) {
        self.whole.check(&self.finish(session, cut).await, cut);
    }

    /// Goes on with a guide that was cut.
    async fn finish(&self, session: &str, cut: &str) -> Guide {
        let text = if self.wish == GENERATED { CONTINUE_GENERATED } else { CONTINUE };
        let said = self.server.travel().chat(session, text).await;
        assert!(said.text().contains("is ready"), "{cut}: {:#?}", said.chunks);
        guide(&self.server, session).await
    }
}

/// The guide of a session that is finished.
async fn guide(server: &TestServer, session: &str) -> Guide {
    let shown = server.travel().session(session).await;
    assert_eq!(shown["status"], "COMPLETED", "{shown:#}");
    let page = server.travel().guide(session).await.expect(200);
    Guide::of(&shown, &page, server.standin().requests())
}
