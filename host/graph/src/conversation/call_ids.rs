//! Ids of tool calls that are unique in a conversation.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::checkpoint::SharedList;
use crate::llm::Completion;
use crate::message::call_ids;

/// What an id begins with that replaces an empty id.
const BASE: &str = "call";

/// Number of lookups in the indexes of a list, after which the ids of all of its calls are
/// collected once. The time of a lookup is proportional to the number of chunks.
const INDEX_LOOKUPS: usize = 64;

/// Returns ids for the tool calls of a completion, in order. No id is that of another call of the
/// completion, or of a call of the conversation, which is a list and the messages after it.
///
/// A call whose id is neither empty nor taken has that id. Another has its id, or `call` for an
/// empty one, with a number: the number of all calls so far plus one, or the next number that makes
/// the id unique. The rule is fixed, because a task that is executed again must get the same ids.
pub fn unique_call_ids(
    list: &SharedList,
    append: &[Value],
    completion: &Completion,
) -> Vec<String> {
    let mut taken = TakenIds::new(list, append);
    completion.tool_calls().map(|call| taken.take(&call.id)).collect()
}

/// The ids of tool calls that cannot be given again.
struct TakenIds<'l> {
    list: &'l SharedList,
    /// Ids of the calls of the list, once they were collected.
    listed: Option<HashSet<&'l str>>,
    /// Number of lookups of ids in the list.
    lookups: usize,
    /// Ids of calls that are not in the list.
    others: HashSet<String>,
    /// Number of all calls.
    calls: usize,
    /// The last number that was given with each id. The numbers that were skipped for it are taken.
    numbers: HashMap<String, usize>,
}

impl<'l> TakenIds<'l> {
    fn new(list: &'l SharedList, append: &[Value]) -> Self {
        let appended: Vec<&str> = append.iter().flat_map(call_ids).map(|(_, id)| id).collect();
        let listed: usize = list.chunks().map(|(_, chunk)| chunk.calls()).sum();
        Self {
            list,
            listed: None,
            lookups: 0,
            calls: listed + appended.len(),
            others: appended.into_iter().map(str::to_owned).collect(),
            numbers: HashMap::new(),
        }
    }

    /// Returns a unique id for the next call, and takes it.
    fn take(&mut self, id: &str) -> String {
        let is_free = !id.is_empty() && !self.contains(id);
        let unique = if is_free { id.to_owned() } else { self.numbered(id) };
        self.others.insert(unique.clone());
        self.calls += 1;
        unique
    }

    fn numbered(&mut self, id: &str) -> String {
        let base = if id.is_empty() { BASE } else { id };
        let last = self.numbers.get(base).copied().unwrap_or_default();
        let mut number = self.calls.max(last) + 1;
        let mut numbered = format!("{base}-{number}");
        while self.contains(&numbered) {
            number += 1;
            numbered = format!("{base}-{number}");
        }
        self.numbers.insert(base.to_owned(), number);
        numbered
    }

    fn contains(&mut self, id: &str) -> bool {
        if self.others.contains(id) {
            return true;
        }
        self.lookups += 1;
        if self.lookups <= INDEX_LOOKUPS {
            return self.list.chunks().any(|(_, chunk)| chunk.has_call(id));
        }
        let list = self.list;
        let listed = self
            .listed
            .get_or_insert_with(|| list.iter().flat_map(call_ids).map(|(_, id)| id).collect());
        listed.contains(id)
    }
}
