//! Projection of the events of a run to files.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

use crate::event::{Event, EventKind};
use crate::expr::expression::Variables;
use crate::id::TaskId;
use crate::limit::Exceeded;
use crate::mapping::budget::ProjectionBudget;
use crate::mapping::template::Template;
use crate::mapping::{EventContext, OneOrMany, RunInfo, event_json};

/// Variables of expressions.
const VARIABLES: &[&str] = &["event", "time", "state", "thread", "run", "app", "settings"];

/// Maximum length of the value that replaces a placeholder in a path, in bytes.
const FIELD_BYTES: usize = 120;

/// Maximum length of a path component, in bytes. File systems allow 255.
const PART_BYTES: usize = 240;

/// Name of the placeholder for the time.
const TIMESTAMP_FIELD: &str = "stamp";

/// A compiled table `[files.<name>]` of an app.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "FileProjectionRepr")]
pub struct FileProjection {
    /// Folder of the files, relative to the data folder.
    pub dir: String,
    table: FileProjectionRepr,
    parts: Vec<Vec<PathSegment>>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileProjectionRepr {
    event: String,
    dir: String,
    path: String,
    #[serde(default)]
    nodes: Option<Nodes>,
    #[serde(default)]
    failed: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "OneOrMany")]
struct Nodes(BTreeSet<String>);

impl From<OneOrMany> for Nodes {
    fn from(words: OneOrMany) -> Self {
        Self(words.into_vec().into_iter().collect())
    }
}

#[derive(Clone, Debug, PartialEq)]
enum PathSegment {
    Text(String),
    Field(String),
}

impl TryFrom<FileProjectionRepr> for FileProjection {
    type Error = String;

    fn try_from(table: FileProjectionRepr) -> Result<Self, String> {
        if !is_inside(&table.dir) {
            return Err(format!("`dir` must be a relative path without `..`, not `{}`", table.dir));
        }
        if !is_inside(&table.path) {
            let path = &table.path;
            return Err(format!("`path` must be a relative path without `..`, not `{path}`"));
        }
        if let Some(failed) = &table.failed {
            Template::parse(failed, VARIABLES).map_err(|reason| format!("`failed`: {reason}"))?;
        }
        let parts = table.path.split('/').map(pieces).collect::<Result<_, _>>()?;
        Ok(Self { dir: table.dir.clone(), table, parts })
    }
}

fn is_inside(path: &str) -> bool {
    path.split('/')
        .all(|part| !matches!(part, "" | "." | "..") && !part.contains(['\\', ':', '\0']))
}

fn pieces(part: &str) -> Result<Vec<PathSegment>, String> {
    let mut pieces = Vec::new();
    let mut rest = part;
    while let Some((before, behind)) = rest.split_once('{') {
        let closed = behind.split_once('}').filter(|(name, _)| !name.is_empty());
        let (name, after) =
            closed.ok_or_else(|| format!("`path`: `{part}` has a `{{` without a name and `}}`"))?;
        pieces.extend([PathSegment::Text(before.to_owned()), PathSegment::Field(name.to_owned())]);
        rest = after;
    }
    pieces.push(PathSegment::Text(rest.to_owned()));
    Ok(pieces)
}

/// A file to write.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectedFile {
    /// Sanitized path below the folder.
    pub path: String,
    /// Content of the file.
    pub content: Value,
}

/// Projects the events of one run to files. The events must arrive in order from the first event of
/// the run.
#[derive(Clone, Debug)]
pub struct RunFileProjector<'m> {
    mapping: &'m FileProjection,
    failed: Option<Template>,
    subject: &'m RunInfo,
    /// Tasks for which a file was made, from an event that the task emitted or from its failure.
    tasks_with_file: BTreeSet<TaskId>,
}

impl<'m> RunFileProjector<'m> {
    /// Creates the projection for a run.
    pub fn new(mapping: &'m FileProjection, subject: &'m RunInfo) -> Self {
        let failed = mapping.table.failed.as_ref();
        // Cannot fail: the template was compiled when the table was read.
        let failed = failed.and_then(|failed| Template::parse(failed, VARIABLES).ok());
        Self { mapping, failed, subject, tasks_with_file: BTreeSet::new() }
    }

    /// Returns true if the content of the file that an event becomes has expressions.
    pub fn evaluates(&self, event: &Event) -> bool {
        self.failed.is_some() && matches!(event.kind, EventKind::TaskFailed(_))
    }

    /// Returns true if the file that an event becomes uses the state in its content.
    pub fn wants_state(&self, event: &Event) -> bool {
        self.evaluates(event) && self.failed.as_ref().is_some_and(|failed| failed.uses("state"))
    }

    /// Returns the file that an event becomes, if any. `stamp` is the time of the event with
    /// millisecond precision. After an error, the event can be applied again with another budget.
    ///
    /// # Errors
    ///
    /// [`Exceeded`] if the expressions exceed the budget.
    pub fn apply(
        &mut self,
        event: &Event,
        moment: EventContext<'_>,
        stamp: &str,
        budget: &mut ProjectionBudget,
    ) -> Result<Option<ProjectedFile>, Exceeded> {
        let content = match &event.kind {
            EventKind::Custom(custom) if custom.name == self.mapping.table.event => {
                self.mark_task(&custom.task, event);
                Some(custom.data.clone())
            }
            EventKind::TaskFailed(failed) if failed.retry_in_ms.is_none() => {
                let nodes = self.mapping.table.nodes.as_ref();
                let counts = nodes.is_none_or(|nodes| nodes.0.contains(failed.node.as_str()));
                if !counts || self.tasks_with_file.contains(&failed.task) {
                    return Ok(None);
                }
                let content = self.failed(event, moment, budget)?;
                self.mark_task(&failed.task, event);
                content
            }
            _ => None,
        };
        Ok(content.map(|content| {
            let stamp = format!("{stamp}{:03}", event.seq % 1_000);
            let path = self.mapping.path(&content, &stamp);
            ProjectedFile { path, content }
        }))
    }

    /// Records that a task has a file. No separate files are made for the tasks that run the parent
    /// graphs of its graph.
    fn mark_task(&mut self, task: &TaskId, event: &Event) {
        self.tasks_with_file.extend(event.namespace.ancestors().filter_map(|level| level.task()));
        self.tasks_with_file.insert(task.clone());
    }

    fn failed(
        &self,
        event: &Event,
        moment: EventContext<'_>,
        budget: &mut ProjectionBudget,
    ) -> Result<Option<Value>, Exceeded> {
        let Some(failed) = &self.failed else { return Ok(None) };
        let (event, time) = (event_json(event), Value::from(moment.time));
        let variables = Variables::from([
            ("event", &event),
            ("time", &time),
            ("state", moment.state),
            ("thread", &self.subject.thread),
            ("run", &self.subject.run),
            ("app", &self.subject.app),
            ("settings", &self.subject.settings),
        ]);
        failed.render(&variables, budget).map(Some)
    }
}

impl FileProjection {
    /// Returns the components that the paths of all files begin with, up to the first component
    /// with a placeholder.
    pub fn fixed_parts(&self) -> Vec<String> {
        let fixed = self.parts.iter().map_while(|pieces| match pieces.as_slice() {
            [PathSegment::Text(text)] => Some(sanitize_file_name(text)),
            _ => None,
        });
        fixed.collect()
    }

    fn path(&self, content: &Value, stamp: &str) -> String {
        let part = |pieces: &Vec<PathSegment>| {
            let mut text = String::new();
            for piece in pieces {
                match piece {
                    PathSegment::Text(fixed) => text.push_str(fixed),
                    PathSegment::Field(name) if name == TIMESTAMP_FIELD => text.push_str(stamp),
                    PathSegment::Field(name) => text.push_str(&field_text(content.get(name))),
                }
            }
            sanitize_file_name(&text)
        };
        self.parts.iter().map(part).collect::<Vec<_>>().join("/")
    }
}

fn field_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "_".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "_".to_owned(),
        Some(Value::String(text)) => text[..text.floor_char_boundary(FIELD_BYTES)].to_owned(),
        Some(other) => json_start(other),
    }
}

/// Returns the beginning of the JSON text of a value, at most [`FIELD_BYTES`] bytes. Serialization
/// stops there.
fn json_start(value: &Value) -> String {
    let mut text = [0_u8; FIELD_BYTES];
    let mut rest = text.as_mut_slice();
    // An error means that the text is full.
    let _ = serde_json::to_writer(&mut rest, value);
    let written = FIELD_BYTES - rest.len();
    let whole_chars = text[..written].utf8_chunks().next();
    whole_chars.map_or_else(String::new, |chunk| chunk.valid().to_owned())
}

/// Replaces all characters that have a meaning in file systems, and limits the length.
fn sanitize_file_name(text: &str) -> String {
    let mut name = String::new();
    for letter in text.chars() {
        let is_plain = letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
        // Writing to a string cannot fail.
        let _ = name.write_char(if is_plain { letter } else { '_' });
    }
    if name.is_empty() || name.starts_with('.') {
        name.insert(0, '_');
    }
    name.truncate(name.floor_char_boundary(PART_BYTES));
    name
}
