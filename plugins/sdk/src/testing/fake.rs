//! The fake host: methods that set its script, and methods that return recorded calls.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;

use crate::failure::Failure;
use crate::interrupt::Question;
use crate::json::empty_object_schema;
use crate::runs::{EndedRun, Outcome, Resume, RunRef, Start, Thread};
use crate::testing::record::{Logged, SqlAnswer, Statement};
use crate::testing::state::{Pictures, Shared, enter};
use crate::tool::{ToolInfo, ToolOutput};
use crate::tools::Call;
use crate::web::{Request, Response};
use crate::{http, llm};

/// A fake host that implements all imports with a script. The fake host of [`FakeHost::run`] is
/// that of the current thread. Stored data is kept between calls of [`FakeHost::run`]. See the
/// [module](super) for an example.
#[derive(Debug, Default)]
pub struct FakeHost {
    state: Shared,
}

/// Methods that set the script.
impl FakeHost {
    /// Creates a fake host without scripts. Its clock is stopped at 2026-01-01T00:00:00Z, its time
    /// zone is UTC, and blobs and memory are empty.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs a closure in which SDK calls go to this fake host.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        let _entered = enter(Rc::clone(&self.state));
        work()
    }

    /// Calls a handler, and returns the status and the JSON body of its response.
    ///
    /// ```
    /// use wattle_plugin::prelude::*;
    /// use wattle_plugin::testing::FakeHost;
    ///
    /// /// Reports whether the plugin is ready.
    /// #[handler(GET, "/health")]
    /// fn health(_request: &Request) -> Result<Response, Failure> {
    ///     Response::json(200, &json!({"ready": true}))
    /// }
    ///
    /// let response = FakeHost::new().respond(health, &Request::new("GET", "/health"));
    /// assert_eq!(response, (200, json!({"ready": true})));
    /// ```
    ///
    /// # Panics
    ///
    /// If the handler fails, or if its response has no JSON body.
    #[track_caller]
    pub fn respond(
        &self,
        handler: impl FnOnce(&Request) -> Result<Response, Failure>,
        request: &Request,
    ) -> (u16, Value) {
        let response = self.run(|| handler(request));
        match response.and_then(|response| Ok((response.status, response.json_body()?))) {
            Ok(parts) => parts,
            Err(failure) => panic!("the handler returned no JSON response: {failure}"),
        }
    }

    /// Sets the script of model calls, including streamed ones.
    pub fn llm(
        self,
        script: impl FnMut(&llm::Request) -> Result<llm::Completion, Failure> + 'static,
    ) -> Self {
        self.state.borrow_mut().llm = Some(Rc::new(RefCell::new(script)));
        self
    }

    /// Sets the script of image generation, which returns media types and bytes.
    pub fn images(
        self,
        script: impl FnMut(&llm::ImageRequest) -> Result<Pictures, Failure> + 'static,
    ) -> Self {
        self.state.borrow_mut().images = Some(Rc::new(RefCell::new(script)));
        self
    }

    /// Sets the script of HTTP requests.
    pub fn http(
        self,
        script: impl FnMut(&http::Request) -> Result<http::Response, Failure> + 'static,
    ) -> Self {
        self.state.borrow_mut().http = Some(Rc::new(RefCell::new(script)));
        self
    }

    /// Sets the script of SQL statements.
    pub fn sql(
        self,
        script: impl FnMut(&Statement) -> Result<SqlAnswer, Failure> + 'static,
    ) -> Self {
        self.state.borrow_mut().sql = Some(Rc::new(RefCell::new(script)));
        self
    }

    /// Sets the SQL dialect of all databases. Default: `sqlite`.
    pub fn dialect(self, dialect: &str) -> Self {
        dialect.clone_into(&mut self.state.borrow_mut().dialect);
        self
    }

    /// Grants a tool of another plugin and sets the script of its calls.
    pub fn tool(
        self,
        name: &str,
        script: impl FnMut(&Value) -> Result<ToolOutput, Failure> + 'static,
    ) -> Self {
        let arguments_schema = empty_object_schema();
        let info = ToolInfo { name: name.to_owned(), arguments_schema, ..ToolInfo::default() };
        self.described_tool(info, script)
    }

    /// Grants a tool with a description and sets the script of its calls.
    pub fn described_tool(
        self,
        info: ToolInfo,
        script: impl FnMut(&Value) -> Result<ToolOutput, Failure> + 'static,
    ) -> Self {
        self.state.borrow_mut().tools.push((info, Rc::new(RefCell::new(script))));
        self
    }

    /// Sets the models of a route.
    pub fn route(self, name: &str, info: llm::RouteInfo) -> Self {
        self.state.borrow_mut().routes.insert(name.to_owned(), info);
        self
    }

    /// Sets a route of the tenant.
    pub fn tenant_route(self, name: &str, config: impl Into<Value>) -> Self {
        self.state.borrow_mut().tenant_routes.insert(name.to_owned(), config.into());
        self
    }

    /// Sets the clock, in milliseconds since 1970.
    pub fn now_ms(self, now_ms: i64) -> Self {
        self.state.borrow_mut().now_ms = now_ms;
        self
    }

    /// Sets the operator's time zone, with its offset from UTC in seconds. Time zones that were set
    /// earlier remain available by name.
    pub fn zone(self, name: &str, offset_seconds: i32) -> Self {
        self.state.borrow_mut().zones.push((name.to_owned(), offset_seconds));
        self
    }

    /// Adds an answer. Each interrupt takes the first answer that is not used yet.
    pub fn answer(self, answer: impl Into<Value>) -> Self {
        self.state.borrow_mut().answers.push_back(answer.into());
        self
    }

    /// Sets a setting of the app.
    pub fn setting(self, name: &str, value: impl Into<Value>) -> Self {
        self.state.borrow_mut().settings.insert(name.to_owned(), value.into());
        self
    }

    /// Sets the script that returns the outcomes of runs.
    pub fn run_ends(self, mut script: impl FnMut(&RunRef) -> EndedRun + 'static) -> Self {
        let script = move |run: &RunRef| Ok(script(run));
        self.state.borrow_mut().run_ends = Some(Rc::new(RefCell::new(script)));
        self
    }

    /// Sets how all runs end: their outcome, and the state that
    /// [`runs::wait`](crate::runs::wait) returns with it.
    ///
    /// ```
    /// use wattle_plugin::prelude::*;
    /// use wattle_plugin::runs::Outcome;
    /// use wattle_plugin::testing::FakeHost;
    ///
    /// let host = FakeHost::new().outcome(Outcome::Completed, json!({"total": 3}));
    /// let ended = host.run(|| {
    ///     let run = runs::Start::graph("order").start()?;
    ///     runs::wait(&run)
    /// })?;
    /// assert_eq!((ended.outcome, ended.state), (Outcome::Completed, json!({"total": 3})));
    /// # Ok::<_, Failure>(())
    /// ```
    pub fn outcome(self, outcome: Outcome, state: impl Into<Value>) -> Self {
        let state = state.into();
        self.run_ends(move |run| EndedRun {
            run: run.clone(),
            outcome: outcome.clone(),
            state: state.clone(),
        })
    }

    /// Sets the script of run starts, which can reject a start. Without a script, every start
    /// succeeds.
    pub fn starts(self, script: impl FnMut(&Start) -> Result<(), Failure> + 'static) -> Self {
        self.state.borrow_mut().start = Some(Rc::new(RefCell::new(script)));
        self
    }

    /// Sets the script of resumes, which can reject a resume. Without a script, every resume
    /// succeeds.
    pub fn resumes(self, script: impl FnMut(&Resume) -> Result<(), Failure> + 'static) -> Self {
        self.state.borrow_mut().resume = Some(Rc::new(RefCell::new(script)));
        self
    }

    /// Adds a thread.
    pub fn thread(self, thread: Thread) -> Self {
        self.state.borrow_mut().threads.insert(thread.thread_id.clone(), thread);
        self
    }

    /// Appends an event to the log of a thread, which need not be added for this. The first event
    /// has the sequence number 1.
    pub fn event(self, thread_id: &str, event: impl Into<Value>) -> Self {
        self.state.borrow_mut().events.push((thread_id.to_owned(), event.into()));
        self
    }

    /// Advances both the wall clock and the monotonic clock.
    pub fn advance_ms(&self, ms: u32) {
        let mut state = self.state.borrow_mut();
        state.now_ms += i64::from(ms);
        state.monotonic_ns += u64::from(ms) * 1_000_000;
    }
}

/// Methods that return recorded calls.
impl FakeHost {
    /// Returns the requests of model calls.
    pub fn llm_requests(&self) -> Vec<llm::Request> {
        self.state.borrow().notes.llm.clone()
    }

    /// Returns the image requests that succeeded.
    pub fn image_requests(&self) -> Vec<llm::ImageRequest> {
        self.state.borrow().notes.images.clone()
    }

    /// Returns the tool calls in order.
    pub fn tool_calls(&self) -> Vec<Call> {
        self.state.borrow().notes.tools.clone()
    }

    /// Returns the names and configurations of the routes that were set for the tenant, including
    /// their keys.
    pub fn set_routes(&self) -> Vec<(String, Value)> {
        self.state.borrow().notes.routes.clone()
    }

    /// Returns the HTTP requests.
    pub fn http_requests(&self) -> Vec<http::Request> {
        self.state.borrow().notes.http.clone()
    }

    /// Returns the SQL statements, including `BEGIN`, `COMMIT` and `ROLLBACK`.
    pub fn statements(&self) -> Vec<Statement> {
        self.state.borrow().notes.statements.clone()
    }

    /// Returns the questions of the interrupts.
    pub fn questions(&self) -> Vec<Question> {
        self.state.borrow().notes.questions.clone()
    }

    /// Returns the names and data of custom events.
    pub fn emitted(&self) -> Vec<(String, Value)> {
        self.state.borrow().notes.emitted.clone()
    }

    /// Returns the messages and fractions of reported progress.
    pub fn progress(&self) -> Vec<(String, Option<f64>)> {
        self.state.borrow().notes.progress.clone()
    }

    /// Returns the log messages.
    pub fn logged(&self) -> Vec<Logged> {
        self.state.borrow().notes.logged.clone()
    }

    /// Returns the requests of started runs.
    pub fn started(&self) -> Vec<Start> {
        self.state.borrow().notes.started.clone()
    }

    /// Returns the requests of resumed threads.
    pub fn resumed(&self) -> Vec<Resume> {
        self.state.borrow().notes.resumed.clone()
    }

    /// Returns the cancelled runs.
    pub fn cancelled(&self) -> Vec<RunRef> {
        self.state.borrow().notes.cancelled.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::FakeHost;
    use crate::failure::{Failure, code};
    use crate::message::Part;
    use crate::node::Conversation;
    use crate::tool::ToolOutput;
    use crate::{emit, interrupt, llm, params, sql, tools};

    #[test]
    fn failure_of_a_call_without_a_fake_host_names_the_method_that_runs_it() {
        let failure = emit::custom("a", json!(1)).unwrap_err();
        assert_eq!(failure.code, code::UNSUPPORTED);
        assert!(failure.message.contains("`FakeHost::run`"));
    }

    #[test]
    fn failure_of_a_call_without_a_script_names_the_method_that_sets_it() {
        let failure = FakeHost::new().run(|| sql::database("a").query("SELECT 1", params![]));
        assert!(failure.unwrap_err().message.contains("`FakeHost::sql`"));
    }

    #[test]
    fn call_batch_returns_outputs_and_failures_in_order() {
        let host = FakeHost::new()
            .tool("echo", |value| Ok(ToolOutput::text(value.to_string())))
            .tool("fail", |_| Err(Failure::conflict("not now")));
        let calls = ["echo", "fail", "none", "echo"];
        let calls = calls.iter().zip(0..).map(|(tool, index)| tools::Call::new(*tool, index));
        let answers = host.run(|| tools::call_all(calls.collect()));
        let codes: Vec<_> = answers
            .into_iter()
            .map(|answer| {
                answer.map_or_else(|failure| failure.code, |output| output.text_content())
            })
            .collect();
        assert_eq!(codes, ["0", code::CONFLICT, code::NOT_FOUND, "3"]);
        assert_eq!(host.tool_calls().len(), 4);
    }

    #[test]
    fn stream_has_deltas_of_text_and_tool_calls() {
        let host = FakeHost::new().llm(|_| {
            let mut answer = llm::Completion::of_tool_call("call-1", "add", json!({"a": 1}));
            answer.parts.insert(0, Part::Text("I will".to_owned()));
            Ok(answer)
        });
        let pieces: Vec<_> = host
            .run(|| llm::Request::route("chat").user("go").stream())
            .map(|stream| stream.filter_map(Result::ok).collect())
            .unwrap();
        let text = |text: &str| llm::StreamEvent::Text(text.to_owned());
        let call = llm::StreamEvent::ToolCallDelta {
            index: 0,
            name: Some("add".to_owned()),
            arguments: r#"{"a":1}"#.to_owned(),
        };
        assert_eq!(pieces, [text("I "), text("will"), call]);
    }

    #[test]
    fn completion_of_a_request_with_a_history_has_ids_of_its_calls() {
        let host = FakeHost::new()
            .llm(|_| Ok(llm::Completion::of_tool_call("call-1", "add", json!({"a": 1}))));
        let request = || llm::Request::route("chat");
        let talk = Conversation::default();
        host.run(|| {
            let answer = request().history(&talk).complete().unwrap();
            assert_eq!(answer.call_ids(), Some(vec!["call-1".to_owned()]));
            assert_eq!(request().complete().unwrap().call_ids(), None);
        });
    }

    #[test]
    fn interrupt_without_an_answer_fails() {
        let host = FakeHost::new().answer(1);
        let answers = host.run(|| (interrupt::ask(json!("a")), interrupt::ask(json!("b"))));
        assert_eq!(answers.0, Ok(json!(1)));
        assert_eq!(answers.1.unwrap_err().code, "interrupted");
        assert_eq!(host.questions().len(), 2);
    }

    #[test]
    fn dropped_transaction_is_rolled_back() {
        let host = FakeHost::new();
        host.run(|| drop(sql::database("a").begin()));
        let texts: Vec<_> = host.statements().into_iter().map(|statement| statement.text).collect();
        assert_eq!(texts, ["BEGIN", "ROLLBACK"]);
    }

    #[test]
    fn fake_hosts_nest() {
        let (outer, inner) = (FakeHost::new(), FakeHost::new());
        outer.run(|| {
            inner.run(|| emit::custom("inner", json!(1)).unwrap());
            emit::custom("outer", json!(1)).unwrap();
        });
        assert_eq!(outer.emitted()[0].0, "outer");
        assert_eq!(inner.emitted()[0].0, "inner");
    }
}
