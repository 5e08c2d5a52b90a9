//! Projection of the events of a run to a stream in the app's own format.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::definition::HumanDuration;
use crate::event::{Event, EventKind};
use crate::expr::expression::{CelExpression, Variables};
use crate::limit::Exceeded;
use crate::mapping::budget::ProjectionBudget;
use crate::mapping::template::Template;
use crate::mapping::{EventContext, OneOrMany, RunInfo, event_json, field};
use crate::toml_depth;

/// Variables of expressions.
const VARIABLES: &[&str] =
    &["event", "time", "state", "thread", "run", "app", "settings", "constants", "seq", "item"];

/// Default of [`StreamProjection::heartbeat`]. Proxies close a connection after half a minute
/// without data.
const HEARTBEAT: HumanDuration = HumanDuration::from_ms(15_000);

/// Minimum of [`StreamProjection::heartbeat`], in milliseconds. A shorter interval has no use,
/// because the comments only keep a connection open.
const MIN_HEARTBEAT_MS: u64 = 100;

/// Maximum number of messages that one event yields. A rule with `each` yields a message for every
/// item of a list.
const MESSAGES_PER_EVENT: usize = 1_000;

/// Bytes that each line of a message takes besides its text when the message is sent.
const LINE_BYTES: u64 = 7;

/// A compiled `streams/<name>.toml`.
#[derive(Clone, Debug)]
pub struct StreamProjection {
    /// Comment that is sent first.
    pub prelude: Option<String>,
    /// Time without a message after which the stream sends a comment.
    pub heartbeat: HumanDuration,
    /// Text of the comments that `heartbeat` sends.
    pub heartbeat_text: String,
    constants: Value,
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    on: Vec<String>,
    nodes: Option<Vec<String>>,
    names: Option<Vec<String>>,
    when: Option<CelExpression>,
    each: Option<CelExpression>,
    event: Option<Template>,
    data: Data,
}

#[derive(Clone, Debug)]
enum Data {
    Json(Template),
    Text(Template),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamDocument {
    #[serde(default, rename = "doc")]
    _doc: String,
    prelude: Option<String>,
    heartbeat: Option<HumanDuration>,
    #[serde(default)]
    heartbeat_text: String,
    #[serde(default)]
    constants: Map<String, Value>,
    #[serde(default)]
    messages: Vec<MessageTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageTable {
    on: OneOrMany,
    node: Option<OneOrMany>,
    name: Option<OneOrMany>,
    when: Option<String>,
    each: Option<String>,
    event: Option<String>,
    data: Option<Value>,
    text: Option<String>,
}

impl StreamProjection {
    /// Compiles a file.
    ///
    /// # Errors
    ///
    /// A message that names the problem and its location.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml_depth::check(text).map_err(|error| format!("line {}: {error}", error.line))?;
        let file: StreamDocument = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            format!("{place}{}", error.message())
        })?;
        let heartbeat = file.heartbeat.unwrap_or(HEARTBEAT);
        if heartbeat.as_ms() < MIN_HEARTBEAT_MS {
            return Err(format!("`heartbeat` must be at least {MIN_HEARTBEAT_MS}ms"));
        }
        let compile = |(index, table): (usize, MessageTable)| {
            let number = index + 1;
            Rule::compile(table).map_err(|reason| format!("message {number}: {reason}"))
        };
        let rules = file.messages.into_iter().enumerate().map(compile);
        Ok(Self {
            prelude: file.prelude,
            heartbeat,
            heartbeat_text: file.heartbeat_text,
            constants: Value::Object(file.constants),
            rules: rules.collect::<Result<_, _>>()?,
        })
    }
}

impl Rule {
    fn compile(table: MessageTable) -> Result<Self, String> {
        let on = table.on.into_vec();
        if let Some(unknown) = on.iter().find(|word| !EventKind::NAMES.contains(&word.as_str())) {
            let known = EventKind::NAMES.join("`, `");
            return Err(format!("unknown kind of event `{unknown}`; the kinds are `{known}`"));
        }
        let expression = |text: String| CelExpression::parse(&text, VARIABLES);
        let template = |value: Value| Template::parse(&value, VARIABLES);
        let data = match (table.data, table.text) {
            (Some(data), None) => Data::Json(template(data)?),
            (None, Some(text)) => Data::Text(template(text.into())?),
            _ => return Err("write either `data` or `text`".to_owned()),
        };
        Ok(Self {
            on,
            nodes: table.node.map(OneOrMany::into_vec),
            names: table.name.map(OneOrMany::into_vec),
            when: table.when.map(expression).transpose()?,
            each: table.each.map(expression).transpose()?,
            event: table.event.map(|name| template(name.into())).transpose()?,
            data,
        })
    }

    /// Returns true if the rule lists the kind of the event.
    fn is_on(&self, event: &Event) -> bool {
        self.on.iter().any(|name| name == event.kind.name())
    }

    /// Returns true if the event has a node and a name that the rule accepts.
    fn matches(&self, event: &Value) -> bool {
        let fits = |wanted: &Option<Vec<String>>, name: &str| {
            let Some(wanted) = wanted else { return true };
            field(event, name).is_some_and(|found| wanted.iter().any(|word| word == found))
        };
        fits(&self.nodes, "node") && fits(&self.names, "name")
    }

    fn uses(&self, variable: &str) -> bool {
        let (Data::Json(data) | Data::Text(data)) = &self.data;
        data.uses(variable)
            || self.event.as_ref().is_some_and(|event| event.uses(variable))
            || [&self.when, &self.each].into_iter().flatten().any(|it| it.uses(variable))
    }
}

/// One message of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamMessage {
    /// Name of the message.
    pub event: Option<String>,
    /// Data of the message: JSON or text.
    pub data: String,
}

/// Projects the events of one run to messages. The events must arrive in order from the first event
/// of the run, even if a client has already received some messages, because the number of a message
/// counts all messages before it.
#[derive(Clone, Debug)]
pub struct StreamProjector {
    mapping: Arc<StreamProjection>,
    subject: RunInfo,
    seq: u64,
}

impl StreamProjector {
    /// Creates a stream that has sent nothing yet.
    pub fn new(mapping: Arc<StreamProjection>, subject: RunInfo) -> Self {
        Self { mapping, subject, seq: 0 }
    }

    /// Returns the compiled rules.
    pub fn mapping(&self) -> &StreamProjection {
        &self.mapping
    }

    /// Returns true if a rule lists the kind of the event. Other events yield no message.
    pub fn is_on(&self, event: &Event) -> bool {
        self.mapping.rules.iter().any(|rule| rule.is_on(event))
    }

    /// Returns true if a message of an event uses the state.
    pub fn wants_state(&self, event: &Event) -> bool {
        let rules = self.mapping.rules.iter();
        let mut rules = rules.filter(|rule| rule.is_on(event) && rule.uses("state")).peekable();
        // `streamed` events are frequent, so their JSON form is built only if a rule needs it.
        if rules.peek().is_none() {
            return false;
        }
        let event = event_json(event);
        rules.any(|rule| rule.matches(&event))
    }

    /// Returns the messages of an event. After an error, the event can be applied again with
    /// another budget.
    ///
    /// # Errors
    ///
    /// [`Exceeded`] if the expressions or the messages exceed the budget.
    pub fn apply(
        &mut self,
        event: &Event,
        moment: EventContext<'_>,
        budget: &mut ProjectionBudget,
    ) -> Result<Vec<StreamMessage>, Exceeded> {
        let mut rules = self.mapping.rules.iter().filter(|rule| rule.is_on(event)).peekable();
        if rules.peek().is_none() {
            return Ok(Vec::new());
        }
        let event = event_json(event);
        let mut messages = Vec::new();
        for rule in rules.filter(|rule| rule.matches(&event)) {
            self.apply_rule(rule, &event, moment, budget, &mut messages)?;
        }
        self.seq += messages.len() as u64;
        Ok(messages)
    }

    fn apply_rule(
        &self,
        rule: &Rule,
        event: &Value,
        moment: EventContext<'_>,
        budget: &mut ProjectionBudget,
        messages: &mut Vec<StreamMessage>,
    ) -> Result<(), Exceeded> {
        let time = Value::from(moment.time);
        let seq_after = |sent: usize| Value::from(self.seq + sent as u64 + 1);
        let seq = seq_after(messages.len());
        let variables = self.variables(event, &time, moment, &seq, &Value::Null);
        if let Some(when) = &rule.when
            && *budget.eval(when, &variables)? != Value::Bool(true)
        {
            return Ok(());
        }
        let items = match &rule.each {
            None => Cow::Owned(Value::Array(vec![Value::Null])),
            Some(each) => budget.eval(each, &variables)?,
        };
        for item in items.as_array().into_iter().flatten() {
            if messages.len() == MESSAGES_PER_EVENT {
                break;
            }
            let seq = seq_after(messages.len());
            let variables = self.variables(event, &time, moment, &seq, item);
            messages.push(rule.message(&variables, budget)?);
        }
        Ok(())
    }

    fn variables<'a>(
        &'a self,
        event: &'a Value,
        time: &'a Value,
        moment: EventContext<'a>,
        seq: &'a Value,
        item: &'a Value,
    ) -> Variables<'a> {
        Variables::from([
            ("event", event),
            ("time", time),
            ("state", moment.state),
            ("thread", &self.subject.thread),
            ("run", &self.subject.run),
            ("app", &self.subject.app),
            ("settings", &self.subject.settings),
            ("constants", &self.mapping.constants),
            ("seq", seq),
            ("item", item),
        ])
    }
}

impl Rule {
    fn message(
        &self,
        variables: &Variables<'_>,
        budget: &mut ProjectionBudget,
    ) -> Result<StreamMessage, Exceeded> {
        let event = match &self.event {
            Some(name) => Some(text(name.render(variables, budget)?, budget)?),
            None => None,
        };
        // A server-sent event has its name on one line.
        let event = event.map(|name| name.replace(['\r', '\n'], " "));
        let data = match &self.data {
            Data::Json(template) => {
                let value = template.render(variables, budget)?;
                budget.json(&value)?
            }
            Data::Text(template) => text(template.render(variables, budget)?, budget)?,
        };
        Ok(StreamMessage { event, data })
    }
}

/// Returns a string as it is, and any other value as JSON.
fn text(value: Value, budget: &mut ProjectionBudget) -> Result<String, Exceeded> {
    match value {
        Value::String(text) => {
            let lines = text.split(['\r', '\n']).count() as u64;
            budget.take_message_bytes(text.len() as u64 + lines * LINE_BYTES)?;
            Ok(text)
        }
        other => budget.json(&other),
    }
}
