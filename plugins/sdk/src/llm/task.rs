//! Structured tasks: requests whose completions have to pass the checks of the plugin.

mod attempt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::llm::{Completion, FinishReason, Request};
use crate::prompt::{fill, head};

/// Code of the failure of a [`Task`] for which no candidate made a completion that passes.
pub const TASK_FAILED: &str = "task-failed";

/// Default template of the text with the reasons of a refusal.
const REFUSAL: &str = "\
An earlier answer was refused for these reasons:
{{reasons}}
Answer again, whole, with all of them corrected.
";

/// Maximum number of reasons in a request. A model corrects a few at a time.
const REASONS: usize = 12;

/// Maximum number of characters of one reason. Some repeat the text that they are about.
const REASON_CHARS: usize = 300;

/// A request whose completion has to pass a check, with the limits of its attempts.
///
/// The task calls the candidates of its route one after the other, until a completion passes. Each
/// candidate gets [`retries`](Task::retries) retries, whatever failed before: the call, the schema
/// or the check. After a failure that a retry cannot correct, the next candidate follows
/// immediately. The request after a refused completion has the reasons, so the host does not repair
/// the completion.
///
/// A [`Request`] whose schema is the only check needs no task, because the host makes retries,
/// repairs and fallbacks itself.
///
/// ```
/// use wattle_plugin::llm::{RouteInfo, Task};
/// use wattle_plugin::prelude::*;
/// use wattle_plugin::testing::FakeHost;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Plan {
///     days: u32,
/// }
///
/// const PLAN: Task = Task::new("plan").max_output_tokens(1_024).retries(1);
///
/// let mut answers = [9, 3].into_iter();
/// let host = FakeHost::new()
///     .route("plan", RouteInfo::default())
///     .llm(move |_| Ok(Completion::of_json(json!({ "days": answers.next() }))));
/// host.run(|| {
///     let plan = PLAN.document("Plan a journey.", "To Osaka.", |plan: Plan| match plan.days {
///         1..=7 => Ok(plan),
///         days => Err(vec![format!("`days` is {days}; give 1 to 7")]),
///     })?;
///     assert_eq!((plan.value.days, plan.attempts), (3, 2));
///     Ok::<_, Failure>(())
/// })?;
/// let asked = host.llm_requests();
/// assert_eq!(asked[0].text(), "Plan a journey.\nTo Osaka.");
/// assert!(asked[1].text().contains("- `days` is 9; give 1 to 7"));
/// # Ok::<_, Failure>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    name: &'static str,
    route: &'static str,
    refusal: &'static str,
    temperature: Option<f64>,
    max_output_tokens: Option<u32>,
    timeout_ms: Option<u32>,
    retries: u32,
}

/// A value that passed the checks of a [`Task`].
#[derive(Debug, Clone, PartialEq)]
pub struct Checked<T> {
    /// The value that the check returned.
    pub value: T,
    /// The model of the completion, as `provider:model`.
    pub model: String,
    /// Number of attempts with this model.
    pub attempts: u32,
}

impl<T> Checked<T> {
    /// Returns the model with its attempts, as `provider:model (attempts=n)`.
    pub fn origin(&self) -> String {
        format!("{} (attempts={})", self.model, self.attempts)
    }
}

impl Task {
    /// Creates a task without retries. Its route and the schema of its documents have its name.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            route: name,
            refusal: REFUSAL,
            temperature: None,
            max_output_tokens: None,
            timeout_ms: None,
            retries: 0,
        }
    }

    /// Sets the route.
    pub const fn route(mut self, route: &'static str) -> Self {
        self.route = route;
        self
    }

    /// Sets the template of the text that a request after a refused completion adds to the user
    /// message. Its placeholder is `{{reasons}}`. The default is in English.
    pub const fn refusal(mut self, template: &'static str) -> Self {
        self.refusal = template;
        self
    }

    /// Sets the sampling temperature; 0 for the likeliest completion.
    pub const fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the maximum number of output tokens.
    pub const fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// Sets the idle timeout of an attempt, as [`Request::timeout_ms`] does.
    pub const fn timeout_ms(mut self, timeout_ms: u32) -> Self {
        self.timeout_ms = Some(timeout_ms);
        self
    }

    /// Sets the maximum number of retries with each candidate. Those that the host makes count.
    pub const fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Returns the name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Requests a document. `check` returns the value that the plugin makes of the document, or the
    /// reasons why it refuses the document, one sentence each.
    ///
    /// # Errors
    ///
    /// * [`TASK_FAILED`] if no completion passes. The message names the task, and the models with
    ///   the reasons of their last attempts; the details have them as `task` and `models`.
    /// * `cancelled` if the run was cancelled.
    /// * The failure of [`llm::route`](crate::llm::route()), if the task cannot use its route.
    /// * `internal` if `{{reasons}}` is not the placeholder of the template of [`Task::refusal`].
    pub fn document<T, U>(
        &self,
        system: &str,
        user: &str,
        check: impl Fn(T) -> Result<U, Vec<String>>,
    ) -> Result<Checked<U>, Failure>
    where
        T: DeserializeOwned + JsonSchema,
    {
        let ask = |reasons: &[String]| {
            let request = self.request(system, user, reasons)?;
            Ok(request.schema::<T>(self.name))
        };
        attempt::run(self, ask, |completion| {
            let document = completion.structured::<T>().map_err(|failure| vec![failure.message])?;
            check(document)
        })
    }

    /// Requests a text. A text that is empty, cut off or withheld is refused before `check` gets
    /// it. Otherwise like [`Task::document`].
    ///
    /// # Errors
    ///
    /// The failures of [`Task::document`].
    pub fn text<U>(
        &self,
        system: &str,
        user: &str,
        check: impl Fn(String) -> Result<U, Vec<String>>,
    ) -> Result<Checked<U>, Failure> {
        let ask = |reasons: &[String]| self.request(system, user, reasons);
        attempt::run(self, ask, |completion| check(whole_text(completion)?))
    }

    /// Returns the request of one attempt. `reasons` are those of the last completion.
    fn request(&self, system: &str, user: &str, reasons: &[String]) -> Result<Request, Failure> {
        let mut request = Request::route(self.route)
            .system(system)
            .user(format!("{user}{}", self.refusal_of(reasons)?));
        request.temperature = self.temperature;
        request.max_output_tokens = self.max_output_tokens;
        Ok(match self.timeout_ms {
            Some(timeout_ms) => request.timeout_ms(timeout_ms),
            None => request,
        })
    }

    /// Checks the template of the refusal, which is filled only after a refused completion.
    fn check_refusal(&self) -> Result<(), Failure> {
        fill(self.refusal, &[("reasons", "")]).map(|_| ())
    }

    /// Returns the end of the user message; empty without reasons.
    fn refusal_of(&self, reasons: &[String]) -> Result<String, Failure> {
        if reasons.is_empty() {
            return Ok(String::new());
        }
        let reasons = bounded(reasons);
        let lines: Vec<String> = reasons.iter().map(|reason| format!("- {reason}")).collect();
        let refusal = fill(self.refusal, &[("reasons", &lines.join("\n"))])?;
        Ok(format!("\n\n{refusal}"))
    }
}

/// Returns the first reasons, each on one line and of limited length.
fn bounded(reasons: &[String]) -> Vec<String> {
    let one_line = |reason: &String| reason.split_whitespace().collect::<Vec<_>>().join(" ");
    let shorten = |reason: String| head(&reason, REASON_CHARS).to_owned();
    reasons.iter().take(REASONS).map(one_line).map(shorten).collect()
}

/// Returns the text of a completion that is complete and not empty.
fn whole_text(completion: &Completion) -> Result<String, Vec<String>> {
    let wrong = match completion.finish_reason {
        FinishReason::Length => "the answer was cut off at its length limit; be shorter",
        FinishReason::ContentFilter => "the answer was withheld by the provider",
        _ if !completion.is_answer() => "the answer is empty",
        _ => return Ok(completion.text()),
    };
    Err(vec![wrong.to_owned()])
}

#[cfg(test)]
mod tests;
