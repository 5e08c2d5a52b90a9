//! The states in a cache, with the memory that they take.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::Shared;
use hashlink::LinkedHashMap;
use wattle_graph::checkpoint::{ChannelValue, Checkpoint, Values};
use wattle_graph::id::{CheckpointId, Namespace, ThreadId};
use wattle_graph::weight::NAME_BYTES;

use crate::limit::CACHED_STATES;
use crate::ports::store::{CheckpointTuple, ThreadRecord, Ticket};

/// Bytes for which a state counts without its channels and its namespace: the ids of the thread and
/// of its incarnation, the ticket, and the place in the cache.
const STATE_BYTES: u64 = 1024;

/// The channel values of a checkpoint.
pub(super) struct State {
    /// The incarnation of the thread, see [`ThreadRecord::incarnation_text`].
    incarnation: Arc<str>,
    pub(super) checkpoint: CheckpointId,
    values: Values,
    /// Bytes for which the state counts without its values.
    own_bytes: u64,
    /// Bytes for which the state counts with all of its values.
    all_bytes: u64,
    /// Resolves when the checkpoint is durable. `None` for a checkpoint that was read.
    pub(super) ticket: Option<Shared<Ticket>>,
}

impl State {
    /// Weighs the values of a checkpoint, unless their weights are known.
    pub(super) fn new(incarnation: &Arc<str>, checkpoint: &Checkpoint) -> Self {
        let Checkpoint { meta, values, .. } = checkpoint;
        let names = values.keys().map(|name| NAME_BYTES + name.as_str().len() as u64);
        let own_bytes = STATE_BYTES + meta.namespace.as_str().len() as u64 + names.sum::<u64>();
        let all_bytes = own_bytes + values.values().map(ChannelValue::memory_bytes).sum::<u64>();
        let (incarnation, values) = (incarnation.clone(), values.clone());
        Self { incarnation, checkpoint: meta.id, values, own_bytes, all_bytes, ticket: None }
    }

    /// Returns true if the state belongs to the thread with a record and is durable. The caller has
    /// read the checkpoint from the store, so waiting for the ticket would not change the result.
    pub(super) fn is_of(&self, record: &ThreadRecord) -> bool {
        let is_durable = || match self.ticket.clone() {
            Some(ticket) => matches!(ticket.now_or_never(), Some(Ok(()))),
            None => true,
        };
        *self.incarnation == *record.incarnation_text() && is_durable()
    }

    /// Adds the values to a checkpoint that was read without values.
    pub(super) fn complete(&self, mut tuple: CheckpointTuple) -> CheckpointTuple {
        tuple.checkpoint.values = self.values.clone();
        tuple
    }
}

/// The states of one thread by graph, each with the newest last.
type GraphStates = BTreeMap<Namespace, VecDeque<Arc<State>>>;

/// The states in the cache, which take at most `capacity_bytes`.
pub(super) struct States {
    capacity_bytes: u64,
    /// Threads by their last use, least recent first. Every thread has at least one state.
    threads: LinkedHashMap<ThreadId, GraphStates>,
    /// Number of states that have a value, by its address. Each value counts once, since states
    /// share the values of channels that were not written between them. The versions of a list
    /// count as values of their own, although they share items.
    values: HashMap<usize, usize>,
    bytes: u64,
}

impl States {
    pub(super) fn new(capacity_bytes: u64) -> Self {
        let (threads, values) = (LinkedHashMap::new(), HashMap::new());
        Self { capacity_bytes, threads, values, bytes: 0 }
    }

    /// Returns the state of a checkpoint, and marks the thread as used.
    pub(super) fn find(
        &mut self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: CheckpointId,
    ) -> Option<Arc<State>> {
        let states = self.threads.to_back(thread)?.get(namespace)?;
        states.iter().find(|state| state.checkpoint == id).cloned()
    }

    /// Returns the state of a graph that was added last.
    pub(super) fn newest(&self, thread: &ThreadId, namespace: &Namespace) -> Option<Arc<State>> {
        self.threads.get(thread)?.get(namespace)?.back().cloned()
    }

    /// Adds a state. Returns the states that it replaces.
    pub(super) fn insert(
        &mut self,
        thread: ThreadId,
        namespace: Namespace,
        state: Arc<State>,
    ) -> Vec<Arc<State>> {
        // The states of one graph do not take the whole cache.
        if state.all_bytes > self.capacity_bytes / CACHED_STATES as u64 {
            return Vec::new();
        }
        self.count(&state);
        let mut graphs = self.threads.remove(&thread).unwrap_or_default();
        let states = graphs.entry(namespace).or_default();
        let mut removed = Vec::new();
        // The id of a checkpoint that the store rejected is assigned again.
        let same = states.iter().position(|known| known.checkpoint == state.checkpoint);
        removed.extend(same.and_then(|place| states.remove(place)));
        states.push_back(state);
        if states.len() > CACHED_STATES {
            removed.extend(states.pop_front());
        }
        self.threads.insert(thread, graphs);
        for state in &removed {
            self.discount(state);
        }
        while self.bytes > self.capacity_bytes {
            let Some(oldest) = self.remove_oldest() else { break };
            removed.push(oldest);
        }
        removed
    }

    /// Removes the states of a thread.
    pub(super) fn remove(&mut self, thread: &ThreadId) -> Vec<Arc<State>> {
        let graphs = self.threads.remove(thread).unwrap_or_default();
        let removed: Vec<_> = graphs.into_values().flatten().collect();
        for state in &removed {
            self.discount(state);
        }
        removed
    }

    /// Removes the oldest state of a graph of the least recently used thread. The root graph, which
    /// the next run of the thread needs, comes last.
    fn remove_oldest(&mut self) -> Option<Arc<State>> {
        let (_, graphs) = self.threads.iter_mut().next()?;
        let oldest = {
            let mut last = graphs.last_entry()?;
            let oldest = last.get_mut().pop_front();
            if last.get().is_empty() {
                last.remove();
            }
            oldest
        };
        if graphs.is_empty() {
            self.threads.pop_front();
        }
        oldest.inspect(|state| self.discount(state))
    }

    fn count(&mut self, state: &State) {
        self.bytes += state.own_bytes;
        for value in state.values.values() {
            let states = self.values.entry(value.address()).or_default();
            if *states == 0 {
                self.bytes += value.memory_bytes();
            }
            *states += 1;
        }
    }

    fn discount(&mut self, state: &State) {
        self.bytes -= state.own_bytes;
        for value in state.values.values() {
            let Entry::Occupied(mut states) = self.values.entry(value.address()) else { continue };
            *states.get_mut() -= 1;
            if *states.get() == 0 {
                states.remove();
                self.bytes -= value.memory_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::oneshot;
    use wattle_graph::id::ChannelName;
    use wattle_graph::weight::{SHARED_ITEM_BYTES, VALUE_BYTES};

    use super::*;
    use crate::memory_budget::DEFAULT_BUDGET;
    use crate::ports::store::StoreError;

    fn thread(name: &str) -> ThreadId {
        ThreadId::new(name).unwrap()
    }

    fn state(id: u64, values: &[(&str, &ChannelValue)]) -> State {
        let meta = json!({
            "id": id, "parent": null, "step": 0, "source": "loop", "run": "r", "at_ms": 0,
            "next": [], "versions": {},
        });
        let mut checkpoint: Checkpoint =
            serde_json::from_value(json!({ "meta": meta, "values": {} })).unwrap();
        let named =
            values.iter().map(|(name, value)| (ChannelName::new(name).unwrap(), (*value).clone()));
        checkpoint.values = named.collect();
        State::new(&"1".into(), &checkpoint)
    }

    fn text() -> ChannelValue {
        json!("x".repeat(10_000)).into()
    }

    fn insert(states: &mut States, name: &str, namespace: &str, state: State) -> usize {
        states.insert(thread(name), Namespace::new(namespace), Arc::new(state)).len()
    }

    fn has(states: &mut States, name: &str, namespace: &str, id: u64) -> bool {
        states.find(&thread(name), &Namespace::new(namespace), CheckpointId(id)).is_some()
    }

    #[test]
    fn newest_states_of_each_graph_are_kept() {
        let mut states = States::new(DEFAULT_BUDGET.caches.states_bytes);
        for id in 1..=6 {
            for namespace in ["", "sub"] {
                insert(&mut states, "t", namespace, state(id, &[("a", &text())]));
            }
        }
        for namespace in ["", "sub"] {
            let kept: Vec<u64> =
                (1..=6).filter(|id| has(&mut states, "t", namespace, *id)).collect();
            assert_eq!(kept, [3, 4, 5, 6]);
        }
        assert_eq!(states.remove(&thread("t")).len(), 8);
        assert_eq!((states.bytes, states.values.len(), states.threads.len()), (0, 0, 0));
    }

    #[test]
    fn least_recently_used_threads_lose_their_states_first() {
        let one = state(1, &[("a", &text())]).all_bytes;
        let mut states = States::new(CACHED_STATES as u64 * one);
        for name in ["a", "b", "c", "d"] {
            assert_eq!(insert(&mut states, name, "", state(1, &[("a", &text())])), 0);
        }
        assert!(has(&mut states, "a", "", 1));
        assert_eq!(insert(&mut states, "e", "", state(1, &[("a", &text())])), 1);
        let kept = ["a", "b", "c", "d", "e"].map(|name| has(&mut states, name, "", 1));
        assert_eq!(kept, [true, false, true, true, true]);
        assert_eq!(states.bytes, CACHED_STATES as u64 * one);
        let larger = ChannelValue::from(json!("x".repeat(10_001)));
        assert_eq!(insert(&mut states, "f", "", state(1, &[("a", &larger)])), 0);
        assert!(!has(&mut states, "f", "", 1), "the state exceeds its share");
    }

    #[test]
    fn full_state_cache_removes_states_of_subgraphs_before_those_of_the_root_graph() {
        let one = state(1, &[("a", &text())]).all_bytes;
        let mut states = States::new(CACHED_STATES as u64 * one + 100);
        insert(&mut states, "t", "", state(1, &[("a", &text())]));
        for id in 2..=5 {
            insert(&mut states, "t", "sub", state(id, &[("a", &text())]));
        }
        assert!(has(&mut states, "t", "", 1));
        assert!(!has(&mut states, "t", "sub", 2) && has(&mut states, "t", "sub", 3));
    }

    #[test]
    fn shared_values_count_once_until_the_last_state_is_removed() {
        let mut states = States::new(DEFAULT_BUDGET.caches.states_bytes);
        let (shared, own) = (text(), ChannelValue::from(json!(1)));
        insert(&mut states, "t", "", state(1, &[("a", &shared), ("b", &own)]));
        let first = states.bytes;
        insert(&mut states, "t", "", state(2, &[("a", &shared)]));
        assert!(states.bytes < first + 2 * STATE_BYTES, "{} after {first}", states.bytes);
        // The id of a checkpoint that the store rejected is assigned again.
        assert_eq!(insert(&mut states, "t", "", state(1, &[("b", &own)])), 1);
        assert!(states.bytes > shared.weight());
        assert_eq!(insert(&mut states, "t", "", state(2, &[("b", &own)])), 1);
        assert!(states.bytes < shared.weight(), "{}", states.bytes);
    }

    #[test]
    fn cached_list_items_count_the_memory_that_they_take() {
        let empty = ChannelValue::from(json!([]));
        let list = ChannelValue::from(json!(vec![0; 1_000]));
        let own = state(1, &[("a", &empty)]).all_bytes;
        let bytes = own + 1_000 * (VALUE_BYTES + SHARED_ITEM_BYTES);
        let mut states = States::new(CACHED_STATES as u64 * bytes);
        insert(&mut states, "t", "", state(1, &[("a", &list)]));
        assert_eq!(states.bytes, bytes);
        states.remove(&thread("t"));
        assert_eq!(states.bytes, 0);
    }

    #[test]
    fn only_durable_states_of_the_same_incarnation_are_used() {
        let record = |created_ms| ThreadRecord::unbound(thread("t"), created_ms);
        assert!(state(1, &[]).is_of(&record(1)));
        assert!(!state(1, &[]).is_of(&record(2)));
        for (result, is_shown) in [(Ok(()), true), (Err(StoreError::Closed), false)] {
            let (answer, receiver) = oneshot::channel();
            let ticket = Some(Ticket::waiting(receiver, || ()).shared());
            let state = State { ticket, ..state(1, &[]) };
            assert!(!state.is_of(&record(1)), "not durable yet");
            answer.send(result).unwrap();
            assert_eq!(state.is_of(&record(1)), is_shown);
        }
    }
}
