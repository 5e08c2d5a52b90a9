//! One model call.

use schemars::JsonSchema;
use serde_json::Value;

use crate::failure::Failure;
use crate::host;
use crate::json::{self, Extra};
use crate::llm::{self, Completion, CompletionStream};
use crate::message::{Image, Message, Part, Role};
use crate::tool::ToolInfo;

/// A tool that the model may ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub arguments_schema: Value,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl ToolDefinition {
    /// A tool whose arguments are a type.
    pub fn of<T: JsonSchema>(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            arguments_schema: json::input_schema::<T>(),
            extra: Extra::new(),
        }
    }
}

/// A tool that [`crate::tools::list`] found can be offered as it is.
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

/// Whether the model must, may or must not call a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// It may.
    #[default]
    Auto,
    /// It must not.
    None,
    /// It must call some tool.
    Required,
    /// It must call this tool.
    Tool(String),
    /// A choice this version has no case for.
    Other(String),
}

/// The shape that the answer must have. The host validates it and lets the model repair it once.
#[derive(Debug, Clone, PartialEq)]
pub struct ResponseSchema {
    /// 1 to 64 of `[a-zA-Z0-9_-]`.
    pub name: String,
    /// JSON Schema; the root is an object.
    pub schema: Value,
}

/// One model call. See the [module](crate::llm) for an example.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Name of the route, from the app's manifest.
    pub route: String,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Tools on offer.
    pub tools: Vec<ToolDefinition>,
    /// Whether the model must, may or must not call a tool.
    pub tool_choice: ToolChoice,
    /// The shape of the answer.
    pub response_schema: Option<ResponseSchema>,
    /// 0 for the likeliest answer; the route's default without it.
    pub temperature: Option<f64>,
    /// Most tokens of the answer; the route's default without it.
    pub max_output_tokens: Option<u32>,
    /// For providers that can repeat an answer.
    pub seed: Option<u64>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// Named values beside the fixed fields.
    pub extra: Extra,
}

impl Request {
    /// A call on a route.
    pub fn route(route: impl Into<String>) -> Self {
        Self { route: route.into(), ..Self::default() }
    }

    /// Adds a system message.
    pub fn system(self, text: impl Into<String>) -> Self {
        self.message(Message::new(Role::System, text.into()))
    }

    /// Adds what a person says.
    pub fn user(self, part: impl Into<Part>) -> Self {
        self.message(Message::user(part))
    }

    /// Adds what the model said.
    pub fn assistant(self, part: impl Into<Part>) -> Self {
        self.message(Message::assistant(part))
    }

    /// Adds a picture to the last message of a person, or as one of its own.
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

    /// Says whether the model must, may or must not call a tool.
    pub fn tool_choice(mut self, choice: ToolChoice) -> Self {
        self.tool_choice = choice;
        self
    }

    /// Asks for an answer in the shape of a type; read it with [`Completion::structured`].
    pub fn schema<T: JsonSchema>(self, name: impl Into<String>) -> Self {
        self.schema_value(name, json::input_schema::<T>())
    }

    /// Asks for an answer in the shape of a JSON Schema.
    pub fn schema_value(mut self, name: impl Into<String>, schema: Value) -> Self {
        self.response_schema = Some(ResponseSchema { name: name.into(), schema });
        self
    }

    /// 0 for the likeliest answer.
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }

    /// Limits the answer.
    pub fn max_output_tokens(mut self, tokens: u32) -> Self {
        self.max_output_tokens = Some(tokens);
        self
    }

    /// For providers that can repeat an answer.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Ends the answer at a text.
    pub fn stop(mut self, text: impl Into<String>) -> Self {
        self.stop.push(text.into());
        self
    }

    /// Asks only this model of the route, 0 for the first one. [`llm::route`] says how many there
    /// are.
    pub fn candidate(self, number: u32) -> Self {
        self.with_extra("candidate", number)
    }

    /// At most so many further attempts at each model, instead of what the route says.
    pub fn retries(self, retries: u32) -> Self {
        self.with_extra("retries", retries)
    }

    /// Longest wait for a sign of life of a model, instead of what the route says.
    pub fn timeout_ms(self, timeout_ms: u32) -> Self {
        self.with_extra("timeout_ms", timeout_ms)
    }

    /// Takes an answer of another shape as a failure, for who asks again in its own words; the
    /// answer stands in the failure's details. Otherwise the host lets the model correct it once.
    pub fn without_repair(self) -> Self {
        self.with_extra("repair", false)
    }

    /// Adds a named value beside the fixed fields.
    pub fn with_extra(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.extra.insert(key.into(), value.into());
        self
    }

    /// Calls the model and waits for the whole answer.
    pub fn complete(self) -> Result<Completion, Failure> {
        host::llm::complete(self)
    }

    /// Calls the model and hands out its answer in pieces, see [`llm::stream`].
    pub fn stream(self) -> Result<CompletionStream, Failure> {
        llm::stream(self)
    }

    /// All text of the conversation, for tests that answer by what is asked.
    pub fn text(&self) -> String {
        let texts: Vec<String> = self.messages.iter().map(Message::text).collect();
        texts.join("\n")
    }
}

/// Calls several models at once; answers come in the order of the requests.
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
    fn a_picture_joins_the_last_words_of_the_user() {
        let image = Image::url("https://a/b.png", "image/png");
        let request = Request::route("vision").system("look").image(image.clone());
        assert_eq!(request.messages.len(), 2);
        assert_eq!(request.messages[1].role, Role::User);
        let request = Request::route("vision").user("what is it").image(image);
        assert_eq!(request.messages[0].parts.len(), 2);
    }
}
