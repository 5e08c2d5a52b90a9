//! Identifiers: one newtype for each kind. An identifier is validated when it is parsed, so that
//! other code can rely on its form.

mod blob;
mod call_key;
mod namespace;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

pub use self::blob::BlobRef;
pub use self::call_key::CallKey;
pub use self::namespace::Namespace;

/// Maximum length of a name of a graph, node, channel, app or plugin, in bytes. Names appear in
/// paths, URLs and metric labels.
pub const NAME_LIMIT_BYTES: usize = 128;

/// Maximum length of a thread id or run id, in bytes. Callers may choose ids, and the store uses
/// them as keys.
pub const ID_LIMIT_BYTES: usize = 512;

/// The target that ends a path through a graph.
pub const END: &str = "END";

/// Error of parsing an identifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {what}: {rule}")]
pub struct IdError {
    /// Kind of the identifier, such as `node name`.
    pub what: &'static str,
    /// The rejected text, cut to 64 characters.
    pub text: String,
    /// The format that the identifier must have.
    pub rule: &'static str,
}

fn id_error(what: &'static str, text: &str, rule: &'static str) -> IdError {
    IdError { what, text: text.chars().take(64).collect(), rule }
}

fn parse_name(what: &'static str, text: &str) -> Result<Box<str>, IdError> {
    let rule = "1 to 128 of letters, digits, `_`, `-` and `.`, starting with a letter or `_`";
    let starts_well = text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    let all_good = text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if text.len() > NAME_LIMIT_BYTES || !starts_well || !all_good {
        return Err(id_error(what, text, rule));
    }
    Ok(text.into())
}

fn parse_id(what: &'static str, text: &str) -> Result<Arc<str>, IdError> {
    if text.is_empty() || text.len() > ID_LIMIT_BYTES {
        return Err(id_error(what, text, "1 to 512 bytes"));
    }
    Ok(text.into())
}

macro_rules! identifiers {
    ($($(#[$doc:meta])* $name:ident($text:ty, $what:literal, $parse:ident);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name($text);

        impl $name {
            /// Parses the identifier.
            ///
            /// # Errors
            ///
            /// [`IdError`] if the text breaks the rule for this kind of identifier.
            pub fn new(text: impl AsRef<str>) -> Result<Self, IdError> {
                $parse($what, text.as_ref()).map(Self)
            }

            /// Returns the identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        // Not derived with `into = "String"`, because that would copy the text.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                Self::from(&*id.0)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &self.0)
            }
        }
    )*};
}

// Ids are cloned for each event, task and call of a run, so clones share the text. Names do not
// share theirs: all runs of a graph, on all cores, would contend for the same reference counts.
identifiers! {
    /// Name of an app, which is a folder of graphs, components and settings.
    AppName(Box<str>, "app name", parse_name);
    /// Name of a plugin, which is one component.
    PluginName(Box<str>, "plugin name", parse_name);
    /// Name of a graph of an app.
    GraphName(Box<str>, "graph name", parse_name);
    /// Name of a node of a graph.
    NodeName(Box<str>, "node name", parse_name);
    /// Name of a channel of a graph's state.
    ChannelName(Box<str>, "channel name", parse_name);
    /// Id of a thread. Callers may choose it.
    ThreadId(Arc<str>, "thread id", parse_id);
    /// Id of a run.
    RunId(Arc<str>, "run id", parse_id);
    /// Id of a task, derived from its thread, namespace, base checkpoint, node and index; see
    /// [`TaskId::derive`].
    TaskId(Arc<str>, "task id", parse_id);
    /// Id of an interrupt, derived from the task and the host call; see [`InterruptId::derive`].
    InterruptId(Arc<str>, "interrupt id", parse_id);
}

/// Hexadecimal digits of a derived id. They encode 128 bits, as in the ids of LangGraph.
const DERIVED_DIGITS: usize = 32;

/// Hashes each part with its length, so that different lists of parts have different encodings.
fn derive(parts: &[&[u8]]) -> Arc<str> {
    // The parts are short: copying them is faster than an update of a hasher for each of them.
    let length: usize = parts.iter().map(|part| size_of::<u64>() + part.len()).sum();
    let mut bytes = Vec::with_capacity(length);
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    let hex = blake3::hash(&bytes).to_hex();
    hex[..DERIVED_DIGITS].into()
}

impl TaskId {
    /// Derives the id of task number `index` of `node` that starts from checkpoint `base` of a
    /// thread.
    ///
    /// The id depends only on the arguments. A task has the same id after a restart of the host,
    /// and two tasks never share an id.
    pub fn derive(
        thread: &ThreadId,
        namespace: &Namespace,
        base: CheckpointId,
        node: &NodeName,
        index: u32,
    ) -> Self {
        Self(derive(&[
            thread.as_str().as_bytes(),
            namespace.as_str().as_bytes(),
            &base.0.to_le_bytes(),
            node.as_str().as_bytes(),
            &index.to_le_bytes(),
        ]))
    }
}

/// Returns the path of a host call in its task, such as `2`, or `0.2` for call 2 of the tool that
/// the task called in its call 0. The path is the same in every re-execution.
pub fn call_path(scope: &[u32], call: u32) -> String {
    let path: Vec<String> = scope.iter().chain([&call]).map(ToString::to_string).collect();
    path.join(".")
}

/// Returns the [path of a host call](call_path) as numbers. The path of a tool call is the scope of
/// the calls that the tool makes.
pub fn path_of_call(scope: &[u32], call: u32) -> Vec<u32> {
    scope.iter().copied().chain([call]).collect()
}

/// Returns the id of the message that a completion becomes. The streamed deltas and the state use
/// the same id.
///
/// `again` is the number of the start of the call; see
/// [`CallStarted::start_number`](crate::event::CallStarted::start_number). `restarts` is the number
/// of times that the model has restarted its output since that start. The output after a restart
/// has another id, because a client must not append its deltas to the discarded deltas.
pub fn completion_message_id(
    task: &TaskId,
    scope: &[u32],
    call: u32,
    again: u64,
    restarts: u32,
) -> String {
    let place = call_path(scope, call);
    match (again, restarts) {
        (0, 0) => format!("run--{task}-{place}"),
        _ => format!("run--{task}-{place}-{again}.{restarts}"),
    }
}

impl InterruptId {
    /// Derives the id of the interrupt that host call `call` of a task raises. `scope` is the path
    /// of the tool calls around the call; empty for a call of the node itself.
    pub fn derive(task: &TaskId, scope: &[u32], call: u32) -> Self {
        let path: Vec<[u8; 4]> = scope.iter().chain([&call]).map(|n| n.to_le_bytes()).collect();
        Self(derive(&[task.as_str().as_bytes(), &path.concat()]))
    }

    /// Returns true if a string has the form of a derived id: 32 hexadecimal digits in lower case.
    /// The interrupt itself need not exist.
    pub fn has_form(text: &str) -> bool {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        text.len() == DERIVED_DIGITS && text.bytes().all(is_digit)
    }

    /// Derives the id of elicitation round `round` (from 0) of an MCP server during host call
    /// `call`.
    pub fn elicited(task: &TaskId, scope: &[u32], call: u32, round: u32) -> Self {
        let call = Self::derive(task, scope, call);
        Self(derive(&[call.as_str().as_bytes(), b"server", &round.to_le_bytes()]))
    }

    /// Derives the id of the next interrupt of the same call. A call that is in doubt again raises
    /// another interrupt.
    #[must_use]
    pub fn reissued(&self) -> Self {
        Self(derive(&[self.as_str().as_bytes()]))
    }
}

/// Number of a checkpoint in its thread. Numbers are assigned in order and never reused, not even
/// by forks.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct CheckpointId(pub u64);

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A BLAKE3 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Returns the digest as 64 hexadecimal digits.
    pub fn to_hex(self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }

    /// Returns the bytes of the digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Creates a digest from its bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

// Not derived with `into = "String"`, because that would allocate the text.
impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl TryFrom<String> for Digest {
    type Error = IdError;
    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl std::str::FromStr for Digest {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        blake3::Hash::from_hex(text)
            .map(|hash| Self(*hash.as_bytes()))
            .map_err(|_| id_error("digest", text, "64 hex digits"))
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_hex()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex()[..12])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_validated() {
        assert!(NodeName::new("img_classify").is_ok());
        assert!(NodeName::new("").is_err());
        assert!(NodeName::new("a b").is_err());
        assert!(NodeName::new("1a").is_err());
        assert!(ThreadId::new("unicode 线 and \0 are fine").is_ok());
    }

    #[test]
    fn identifiers_are_written_as_their_text() {
        let thread = ThreadId::new("unicode 线, \" and \0").unwrap();
        let map = std::collections::BTreeMap::from([(thread.clone(), thread.clone())]);
        let text = serde_json::to_string(&map).unwrap();
        assert_eq!(text, r#"{"unicode 线, \" and \u0000":"unicode 线, \" and \u0000"}"#);
        let read: ThreadId = serde_json::from_value(serde_json::json!(thread)).unwrap();
        assert_eq!(read, thread);
    }

    #[test]
    fn task_ids_depend_on_every_part() {
        let thread = ThreadId::new("t").unwrap();
        let node = NodeName::new("n").unwrap();
        let root = Namespace::root();
        let id = |base, index| TaskId::derive(&thread, &root, CheckpointId(base), &node, index);
        assert_eq!(id(1, 0), id(1, 0));
        assert_ne!(id(1, 0), id(2, 0));
        assert_ne!(id(1, 0), id(1, 1));
    }

    #[test]
    fn elicitation_rounds_have_distinct_ids() {
        let task = TaskId::new("t").unwrap();
        let round = |call, round| InterruptId::elicited(&task, &[0], call, round);
        let call = InterruptId::derive(&task, &[0], 1);
        let all = [call.clone(), call.reissued(), round(1, 0), round(1, 1), round(2, 0)];
        let ids: std::collections::BTreeSet<&InterruptId> = all.iter().collect();
        assert_eq!(ids.len(), all.len());
        assert!(InterruptId::has_form(round(1, 0).as_str()));
    }

    #[test]
    fn digests_round_trip() {
        let digest = Digest::of(b"x");
        assert_eq!(digest.to_hex().parse::<Digest>().unwrap(), digest);
        let text = serde_json::to_string(&digest).unwrap();
        assert_eq!(text, format!("\"{}\"", digest.to_hex()));
        assert_eq!(serde_json::from_str::<Digest>(&text).unwrap(), digest);
    }
}
