//! Requests of model calls.

use schemars::JsonSchema;
use serde_json::Value;

use crate::failure::Failure;
use crate::host;
use crate::json::{self, Extra};
use crate::llm::Completion;
use crate::message::{Image, Message, Part, Role};
use crate::tool::ToolInfo;

/// A tool that the model can call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Name of the tool.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub arguments_schema: Value,
    /// Extension fields.
    pub extra: Extra,
}

impl ToolDefinition {
    /// Creates a tool whose arguments have the schema of a type.
    pub fn of<T: JsonSchema>(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            arguments_schema: json::input_schema::<T>(),
            extra: Extra::new(),
        }
    }
}

/// Converts a tool from [`crate::tools::list`].
impl From<ToolInfo> for ToolDefinition {
    fn from(info: ToolInfo) -> Self {
        Self {
            name: info.name,
            description: info.description,
            arguments_schema: info.arguments_schema,
            extra: Extra::new(),
        }
    }
}

/// Controls whether the model calls a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides whether to call a tool.
    #[default]
    Auto,
    /// The model must not call a tool.
    None,
    /// The model must call a tool.
    Required,
    /// The model must call this tool.
    Tool(String),
    /// A choice unknown to this SDK version.
    Other(String),
}

/// The schema for structured output. The host validates the output and lets the model repair it
/// once.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseSchema {
    /// Name of the schema: 1 to 64 characters of `[a-zA-Z0-9_-]`.
    pub name: String,
    /// JSON Schema. Its root must be an object.
    pub schema: Value,
}

/// A model call. See the [module](crate::llm) for an example.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Name of the route, from the app's manifest.
    pub route: String,
    /// Messages of the conversation, in order, without those of a [history](Self::history).
    pub messages: Vec<Message>,
    /// Tools that the model can call.
    pub tools: Vec<ToolDefinition>,
    /// Controls whether the model calls a tool.
    pub tool_choice: ToolChoice,
    /// Schema for structured output; `None` permits any text.
    pub response_schema: Option<ResponseSchema>,
    /// Sampling temperature, 0 for the likeliest completion; `None` selects the default of the
    /// route.
    pub temperature: Option<f64>,
    /// Maximum number of output tokens; `None` selects the default of the route.
    pub max_output_tokens: Option<u32>,
    /// Seed, for providers with reproducible sampling.
    pub seed: Option<u64>,
    /// Stop sequences: strings that end the completion.
    pub stop: Vec<String>,
    /// Extension fields.
    pub extra: Extra,
}

impl Request {
    /// Creates a call of a route.
    pub fn route(route: impl Into<String>) -> Self {
        Self { route: route.into(), ..Self::default() }
    }

    /// Adds a system message.
    pub fn system(self, text: impl Into<String>) -> Self {
        self.message(Message::new(Role::System, text.into()))
    }

    /// Adds a message of a person.
    pub fn user(self, part: impl Into<Part>) -> Self {
        self.message(Message::user(part))
    }

    /// Adds a message of the model.
    pub fn assistant(self, part: impl Into<Part>) -> Self {
        self.message(Message::assistant(part))
    }

    /// Adds an image to the last message if that is a user message. Otherwise adds a new user
    /// message.
    pub fn image(mut self, image: Image) -> Self {
        match self.messages.last_mut() {
            Some(message) if message.role == Role::User => {
                message.parts.push(image.into());
                self
            }
            _ => self.user(image),
        }
    }

    /// Adds a message.
    pub fn message(mut self, message: Message) -> Self {
        self.messages.push(message);
        self
    }

    /// Adds messages.
    pub fn messages(mut self, messages: impl IntoIterator<Item = Message>) -> Self {
        self.messages.extend(messages);
        self
    }

    /// Offers a tool.
    pub fn tool(mut self, tool: impl Into<ToolDefinition>) -> Self {
        self.tools.push(tool.into());
        self
    }

    /// Controls whether the model calls a tool.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = choice;
        self
    }

    /// Requests structured output with the schema of a type. [`Completion::structured`] returns it.
    pub fn schema<T: JsonSchema>(self, name: impl Into<String>) -> Self {
        self.schema_value(name, json::input_schema::<T>())
    }

    /// Requests structured output with a JSON Schema.
    pub fn schema_value(mut self, name: impl Into<String>, schema: Value) -> Self {
        self.response_schema = Some(ResponseSchema { name: name.into(), schema });
        self
    }

    /// Sets the sampling temperature; 0 for the likeliest completion.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Sets the maximum number of output tokens.
    pub fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// Sets the seed, for providers with reproducible sampling.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Adds a stop sequence: a string that ends the completion.
    pub fn stop(mut self, text: impl Into<String>) -> Self {
        self.stop.push(text.into());
        self
    }

    /// Calls only the candidate of the route with this number, from 0.
    /// [`RouteInfo::candidates`](crate::llm::RouteInfo::candidates) returns the number of
    /// candidates.
    pub fn candidate(self, number: u32) -> Self {
        self.with_extra("candidate", number)
    }

    /// Sets the maximum number of retries at each candidate. Overrides the setting of the route.
    pub fn retries(self, retries: u32) -> Self {
        self.with_extra("retries", retries)
    }

    /// Sets the idle timeout of the model call in milliseconds: the maximum wait for the first byte
    /// of the response and for each further byte. Overrides the setting of the route. The host
    /// limits the value.
    pub fn timeout_ms(self, timeout_ms: u32) -> Self {
        self.with_extra("timeout_ms", timeout_ms)
    }

    /// Disables the repair of output that violates the schema. The call then fails, with the
    /// completion in the details of the failure. For plugins that repair completions themselves. By
    /// default, the host lets the model repair the completion once.
    pub fn without_repair(self) -> Self {
        self.with_extra("repair", false)
    }

    /// Adds an extension field.
    pub fn with_extra(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(key.into(), value.into());
        self
    }

    /// Calls the model and waits for the whole completion.
    pub fn complete(self) -> Result<Completion, Failure> {
        host::llm::complete(self)
    }

    /// Returns all text of the messages. For test scripts whose result depends on it. Messages of a
    /// history are not in it, because only the host has them.
    pub fn text(&self) -> String {
        let texts: Vec<String> = self.messages.iter().map(Message::text).collect();
        texts.join("\n")
    }
}

/// Makes several model calls concurrently. Returns the results in the order of the requests.
///
/// ```
/// use wattle_plugin::llm::{self, Completion, Request};
/// use wattle_plugin::testing::FakeHost;
///
/// let host = FakeHost::new().llm(|request| Ok(Completion::of_text(request.text())));
/// host.run(|| {
///     let requests = ["a", "b"].map(|text| Request::route("chat").user(text));
///     let answers = llm::complete_all(requests.to_vec());
///     assert_eq!(answers[1].as_ref().map(|answer| answer.text()), Ok("b".to_owned()));
/// });
/// ```
pub fn complete_all(requests: Vec<Request>) -> Vec<Result<Completion, Failure>> {
    host::llm::complete_all(requests)
}

#[cfg(test)]
mod tests {
    use super::Request;
    use crate::message::{Image, Role};

    #[test]
    fn image_joins_the_last_message_of_a_person() {
        let image = Image::url("https://a/b.png", "image/png");
        let request = Request::route("vision").system("look").image(image.clone());
        assert_eq!(request.messages.len(), 2);
        assert_eq!(request.messages[1].role, Role::User);
        let request = Request::route("vision").user("what is it").image(image);
        assert_eq!(request.messages[0].parts.len(), 2);
    }
}
