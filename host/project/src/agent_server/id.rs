//! Ids in the form of the Agent Server API: UUIDs instead of the engine's numbers and digests.
//!
//! Every conversion except [`call_uuid`] is reversible. The store contains none of these ids,
//! because all of them are derived from ids in the log.

mod event;

use uuid::{Builder, Uuid};
use wattle_graph::id::{CheckpointId, Digest, Namespace, TaskId, ThreadId};

pub use self::event::{EventId, FRAMES_PER_EVENT};

/// UUID namespace of the assistant ids of graphs, equal for all LangGraph servers.
const ASSISTANTS: Uuid = Uuid::from_u128(0x6ba7_b821_9dad_11d1_80b4_00c0_4fd4_30c8);

/// UUID namespace of the run ids of model calls and tool calls.
const CALLS: Uuid = Uuid::from_u128(0x3f0c_54b1_6b1e_4d3a_9c37_0f4e_5d21_7ab8);

/// Length of a task id, in hexadecimal digits.
const TASK_DIGITS: usize = 32;

/// Number of bytes of a checkpoint id that contain the checkpoint's number.
const NUMBER_BYTES: usize = 6;

/// End of the bytes that are zero in an id of [`input_uuid`]. The zeros make the id sort below
/// other ids with the same number. The bytes after them are a digest of the thread.
const LOWEST: usize = 10;

/// Separates two levels of a namespace.
const LEVEL: char = '|';

/// Separates a node and its task.
const TASK: char = ':';

/// Returns the id of the default assistant of a graph.
pub fn assistant_uuid(graph: &str) -> Uuid {
    Uuid::new_v5(&ASSISTANTS, graph.as_bytes())
}

/// Returns the id of a checkpoint: a UUID that sorts like the checkpoint's number. The UUID
/// contains a digest of `origin`, so a thread rejects the checkpoint ids of other threads. A copy
/// of a thread has the `origin` of the original thread and therefore keeps its checkpoint ids.
pub fn checkpoint_uuid(origin: &ThreadId, id: CheckpointId) -> Uuid {
    let mut bytes = [0; 16];
    let number = id.0.to_be_bytes();
    let digest = Digest::of(format!("checkpoints of {origin}").as_bytes());
    bytes[..NUMBER_BYTES].copy_from_slice(&number[number.len() - NUMBER_BYTES..]);
    bytes[NUMBER_BYTES..].copy_from_slice(&digest.as_bytes()[..16 - NUMBER_BYTES]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// Returns the checkpoint with this id; `None` if `text` is not the id of a checkpoint of this
/// thread.
pub fn checkpoint_of(origin: &ThreadId, text: &str) -> Option<CheckpointId> {
    let uuid = Uuid::try_parse(text).ok()?;
    let id = number(uuid);
    (checkpoint_uuid(origin, id) == uuid).then_some(id)
}

/// Returns the id of the state before the input that made checkpoint `made`. The id sorts below the
/// id of `made` and above the ids of all earlier checkpoints.
pub fn input_uuid(origin: &ThreadId, made: CheckpointId) -> Uuid {
    let mut bytes = *checkpoint_uuid(origin, made).as_bytes();
    // A UUID of this version has no lower bytes after the number.
    bytes[NUMBER_BYTES..LOWEST].fill(0);
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// Returns the checkpoint that an input made, from the id of the state before the input. Returns
/// `None` if `text` is not an id that [`input_uuid`] returns for this thread.
pub fn input_of(origin: &ThreadId, text: &str) -> Option<CheckpointId> {
    let uuid = Uuid::try_parse(text).ok()?;
    let made = number(uuid);
    (input_uuid(origin, made) == uuid).then_some(made)
}

fn number(uuid: Uuid) -> CheckpointId {
    let mut number = [0; 8];
    number[8 - NUMBER_BYTES..].copy_from_slice(&uuid.as_bytes()[..NUMBER_BYTES]);
    CheckpointId(u64::from_be_bytes(number))
}

/// Returns a task id in the form of a UUID, with hyphens. An id that is not a digest is returned
/// unchanged.
pub fn task_uuid(task: &TaskId) -> String {
    hyphenated(task.as_str())
}

/// Returns the run id of a model call or a tool call. `name` must be unique among the calls of the
/// thread.
pub fn call_uuid(name: &str) -> String {
    Uuid::new_v5(&CALLS, name.as_bytes()).to_string()
}

/// Returns a namespace whose task ids are UUIDs with hyphens, as clients of the Agent Server API
/// expect them.
pub fn namespace_text(namespace: &Namespace) -> String {
    each_task(namespace.as_str(), hyphenated)
}

/// Returns the levels of [`namespace_text`]. The root namespace has no levels.
pub fn namespace_levels(namespace: &Namespace) -> Vec<String> {
    if namespace.is_root() {
        return Vec::new();
    }
    namespace_text(namespace).split(LEVEL).map(str::to_owned).collect()
}

/// Returns the namespace whose text is `text`, with or without hyphens in task ids.
pub fn namespace_of(text: &str) -> Namespace {
    Namespace::new(each_task(text, |id| match Uuid::try_parse(id) {
        Ok(uuid) => uuid.simple().to_string(),
        Err(_) => id.to_owned(),
    }))
}

fn hyphenated(id: &str) -> String {
    let is_digest = id.len() == TASK_DIGITS;
    match Uuid::try_parse(id).ok().filter(|_| is_digest) {
        Some(uuid) => uuid.hyphenated().to_string(),
        None => id.to_owned(),
    }
}

/// Applies `rewrite` to the task id of each level, and keeps the call path after the task id.
fn each_task(namespace: &str, rewrite: impl Fn(&str) -> String) -> String {
    let level = |level: &str| {
        let Some((node, rest)) = level.split_once(TASK) else { return level.to_owned() };
        let (task, place) = match rest.split_once('.') {
            Some((task, place)) => (task, format!(".{place}")),
            None => (rest, String::new()),
        };
        format!("{node}{TASK}{}{place}", rewrite(task))
    };
    let levels: Vec<String> = namespace.split(LEVEL).map(level).collect();
    levels.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(id: &str) -> ThreadId {
        ThreadId::new(id).unwrap()
    }

    #[test]
    fn assistant_ids_match_those_of_other_servers() {
        let id = assistant_uuid("agent").to_string();
        assert_eq!(id, "fe096781-5601-53d2-b2f6-0d3403f7e9ca");
    }

    #[test]
    fn checkpoint_ids_sort_and_round_trip() {
        let ids = [0, 1, 2, 255, 256, 70_000, (1 << 48) - 1].map(CheckpointId);
        let texts = ids.map(|id| checkpoint_uuid(&thread("t"), id).to_string());
        assert!(texts.is_sorted());
        for (id, text) in ids.iter().zip(&texts) {
            assert_eq!(checkpoint_of(&thread("t"), text), Some(*id));
            assert_eq!(checkpoint_of(&thread("u"), text), None);
            assert_eq!(Uuid::try_parse(text).unwrap().get_version_num(), 8);
        }
        assert_eq!(checkpoint_of(&thread("t"), "7"), None);
        assert_eq!(checkpoint_of(&thread("t"), &Uuid::nil().to_string()), None);
    }

    #[test]
    fn input_ids_sort_between_their_neighbors() {
        for id in [0, 1, 2, 255, 256, 70_000].map(CheckpointId) {
            let point = input_uuid(&thread("t"), id);
            assert!(point < checkpoint_uuid(&thread("t"), id));
            if id.0 > 0 {
                assert!(point > checkpoint_uuid(&thread("t"), CheckpointId(id.0 - 1)));
            }
            let text = point.to_string();
            assert_eq!(input_of(&thread("t"), &text), Some(id));
            assert_eq!(input_of(&thread("u"), &text), None);
            assert_eq!(checkpoint_of(&thread("t"), &text), None);
            let made = checkpoint_uuid(&thread("t"), id).to_string();
            assert_eq!(input_of(&thread("t"), &made), None);
        }
    }

    #[test]
    fn namespaces_round_trip() {
        for (ours, theirs) in [
            ("", ""),
            ("memory", "memory"),
            ("a:c15a42941db6f24e9bd1a1cc3649580c", "a:c15a4294-1db6-f24e-9bd1-a1cc3649580c"),
            (
                "a:c15a42941db6f24e9bd1a1cc3649580c|m|b:00000000000000000000000000000001.0.2",
                "a:c15a4294-1db6-f24e-9bd1-a1cc3649580c|m|b:00000000-0000-0000-0000-000000000001.0.2",
            ),
            ("a:0af3", "a:0af3"),
        ] {
            assert_eq!(namespace_text(&Namespace::new(ours)), theirs);
            assert_eq!(namespace_of(theirs), Namespace::new(ours));
        }
        assert!(namespace_levels(&Namespace::root()).is_empty());
        assert_eq!(namespace_levels(&Namespace::new("a|b")), ["a", "b"]);
    }
}
