//! The states in a cache, with their weight.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::Shared;
use hashlink::LinkedHashMap;
use serde_json::Value;
use wattle_graph::checkpoint::{Checkpoint, ListDelta};
use wattle_graph::id::{ChannelName, CheckpointId, Namespace, ThreadId};
use wattle_graph::weight::{NAME_BYTES, weight};

use crate::limit::CACHED_STATES;
use crate::ports::store::{CheckpointTuple, ThreadRecord, Ticket};

/// Bytes that a state counts without its channels and its namespace: the ids of the thread and of
/// its incarnation, the ticket, and the place in the cache.
const STATE_BYTES: u64 = 1024;

/// The channel values of a checkpoint.
pub(super) struct State {
    /// The incarnation of the thread, see [`ThreadRecord::incarnation_text`].
    incarnation: String,
    pub(super) checkpoint: CheckpointId,
    channels: BTreeMap<ChannelName, WeighedValue>,
    /// Bytes that the state counts without its values.
    own_bytes: u64,
    /// Resolves when the checkpoint is durable. `None` for a checkpoint that was read.
    pub(super) ticket: Option<Shared<Ticket>>,
}

/// A channel value with its weight.
struct WeighedValue {
    value: Arc<Value>,
    bytes: u64,
}

impl State {
    /// Weighs the values of a checkpoint. Values that an earlier state of the graph shares are not
    /// weighed again.
    pub(super) fn new(incarnation: &str, checkpoint: &Checkpoint, before: Option<&Self>) -> Self {
        let Checkpoint { meta, values, list_deltas } = checkpoint;
        let mut own_bytes = STATE_BYTES + meta.namespace.as_str().len() as u64;
        let mut channels = BTreeMap::new();
        for (name, value) in values {
            let before = before.and_then(|before| before.channels.get(name));
            let known = before.and_then(|it| weight_after(it, value, list_deltas.get(name)));
            let bytes = known.unwrap_or_else(|| weight(value));
            own_bytes += NAME_BYTES + name.as_str().len() as u64;
            channels.insert(name.clone(), WeighedValue { value: value.clone(), bytes });
        }
        let (incarnation, checkpoint) = (incarnation.to_owned(), meta.id);
        Self { incarnation, checkpoint, channels, own_bytes, ticket: None }
    }

    /// Returns true if the state belongs to the thread with a record and is durable. The caller has
    /// read the checkpoint from the store, so a wait for the ticket is of no use.
    pub(super) fn is_of(&self, record: &ThreadRecord) -> bool {
        let is_durable = || match self.ticket.clone() {
            Some(ticket) => matches!(ticket.now_or_never(), Some(Ok(()))),
            None => true,
        };
        self.incarnation == record.incarnation_text() && is_durable()
    }

    /// Adds the values to a checkpoint that was read without them.
    pub(super) fn complete(&self, mut tuple: CheckpointTuple) -> CheckpointTuple {
        let values = self.channels.iter().map(|(name, it)| (name.clone(), it.value.clone()));
        tuple.checkpoint.values = values.collect();
        tuple
    }

    /// Returns the bytes of the state with all of its values.
    fn all_bytes(&self) -> u64 {
        self.own_bytes + self.channels.values().map(|it| it.bytes).sum::<u64>()
    }
}

/// Returns the weight of a value that did not change, or of a list that has only grown.
fn weight_after(
    before: &WeighedValue,
    value: &Arc<Value>,
    delta: Option<&ListDelta>,
) -> Option<u64> {
    if Arc::ptr_eq(&before.value, value) {
        return Some(before.bytes);
    }
    let prefix_len = delta?.prefix_len as usize;
    let (known, items) = (before.value.as_array()?, value.as_array()?);
    let new = items.get(prefix_len..)?;
    (known.len() == prefix_len).then(|| before.bytes + new.iter().map(weight).sum::<u64>())
}

/// The states of one thread by graph, each with the newest last.
type GraphStates = BTreeMap<Namespace, VecDeque<Arc<State>>>;

/// The states in the cache. Their weight is at most `capacity_bytes`.
pub(super) struct States {
    capacity_bytes: u64,
    /// Threads by their last use, least recent first. None is without states.
    threads: LinkedHashMap<ThreadId, GraphStates>,
    /// Values by address. Each counts once, since states share the values of channels that were
    /// not written between them.
    values: HashMap<usize, CountedValue>,
    bytes: u64,
}

/// A value in the cache: how many states have it, and its weight.
struct CountedValue {
    states: usize,
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
        if state.all_bytes() > self.capacity_bytes / CACHED_STATES as u64 {
            return Vec::new();
        }
        self.count(&state);
        let mut graphs = self.threads.remove(&thread).unwrap_or_default();
        let states = graphs.entry(namespace).or_default();
        let mut removed = Vec::new();
        // The id of a refused checkpoint is assigned again.
        let same = states.iter().position(|known| known.checkpoint == state.checkpoint);
        removed.extend(same.and_then(|place| states.remove(place)));
        states.push_back(state);
        if states.len() > CACHED_STATES {
            removed.extend(states.pop_front());
        }
        self.threads.insert(thread, graphs);
        removed.iter().for_each(|state| self.discount(state));
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
        removed.iter().for_each(|state| self.discount(state));
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
        for WeighedValue { value, bytes } in state.channels.values() {
            let counted = self.values.entry(address(value));
            let counted = counted.or_insert(CountedValue { states: 0, bytes: *bytes });
            if counted.states == 0 {
                self.bytes += counted.bytes;
            }
            counted.states += 1;
        }
    }

    fn discount(&mut self, state: &State) {
        self.bytes -= state.own_bytes;
        for WeighedValue { value, .. } in state.channels.values() {
            let Entry::Occupied(mut counted) = self.values.entry(address(value)) else { continue };
            counted.get_mut().states -= 1;
            if counted.get().states == 0 {
                self.bytes -= counted.remove().bytes;
            }
        }
    }
}

/// Returns the address of a value. No other value has it while a state holds the value.
fn address(value: &Arc<Value>) -> usize {
    Arc::as_ptr(value).addr()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::sync::oneshot;

    use super::*;
    use crate::limit::STATE_CACHE_BYTES;
    use crate::ports::store::StoreError;

    fn thread(name: &str) -> ThreadId {
        ThreadId::new(name).unwrap()
    }

    fn checkpoint(id: u64, values: &[(&str, &Arc<Value>)]) -> Checkpoint {
        let meta = json!({
            "id": id, "parent": null, "step": 0, "source": "loop", "run": "r", "at_ms": 0,
            "next": [], "versions": {},
        });
        let mut made: Checkpoint =
            serde_json::from_value(json!({ "meta": meta, "values": {} })).unwrap();
        let named =
            values.iter().map(|(name, value)| (ChannelName::new(name).unwrap(), (*value).clone()));
        made.values = named.collect();
        made
    }

    fn state(id: u64, values: &[(&str, &Arc<Value>)]) -> State {
        State::new("1", &checkpoint(id, values), None)
    }

    fn text() -> Arc<Value> {
        Arc::new(json!("x".repeat(10_000)))
    }

    fn insert(states: &mut States, name: &str, namespace: &str, state: State) -> usize {
        states.insert(thread(name), Namespace::new(namespace), Arc::new(state)).len()
    }

    fn has(states: &mut States, name: &str, namespace: &str, id: u64) -> bool {
        states.find(&thread(name), &Namespace::new(namespace), CheckpointId(id)).is_some()
    }

    #[test]
    fn newest_states_of_each_graph_are_kept() {
        let mut states = States::new(STATE_CACHE_BYTES);
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
        let one = state(1, &[("a", &text())]).all_bytes();
        let mut states = States::new(CACHED_STATES as u64 * one);
        for name in ["a", "b", "c", "d"] {
            assert_eq!(insert(&mut states, name, "", state(1, &[("a", &text())])), 0);
        }
        assert!(has(&mut states, "a", "", 1));
        assert_eq!(insert(&mut states, "e", "", state(1, &[("a", &text())])), 1);
        let kept = ["a", "b", "c", "d", "e"].map(|name| has(&mut states, name, "", 1));
        assert_eq!(kept, [true, false, true, true, true]);
        assert_eq!(states.bytes, CACHED_STATES as u64 * one);
        let larger = Arc::new(json!("x".repeat(10_001)));
        assert_eq!(insert(&mut states, "f", "", state(1, &[("a", &larger)])), 0);
        assert!(!has(&mut states, "f", "", 1), "it would take more than its share");
    }

    #[test]
    fn root_graph_loses_its_states_last() {
        let one = state(1, &[("a", &text())]).all_bytes();
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
        let mut states = States::new(STATE_CACHE_BYTES);
        let (shared, own) = (text(), Arc::new(json!(1)));
        insert(&mut states, "t", "", state(1, &[("a", &shared), ("b", &own)]));
        let first = states.bytes;
        insert(&mut states, "t", "", state(2, &[("a", &shared)]));
        assert!(states.bytes < first + 2 * STATE_BYTES, "{} after {first}", states.bytes);
        // The id of a refused checkpoint is assigned again.
        assert_eq!(insert(&mut states, "t", "", state(1, &[("b", &own)])), 1);
        assert!(states.bytes > weight(&shared));
        assert_eq!(insert(&mut states, "t", "", state(2, &[("b", &own)])), 1);
        assert!(states.bytes < weight(&shared), "{}", states.bytes);
    }

    #[test]
    fn weight_of_a_grown_list_is_that_of_the_whole_list() {
        let list = |len: usize| Arc::new(Value::from_iter((0..len).map(|n| json!([n, "text"]))));
        let (short, long) = (list(100), list(103));
        let first = state(1, &[("list", &short)]);
        for prefix_len in [100, 40] {
            let mut second = checkpoint(2, &[("list", &long)]);
            let delta = ListDelta { base: CheckpointId(1), prefix_len };
            second.list_deltas.insert(ChannelName::new("list").unwrap(), delta);
            let second = State::new("1", &second, Some(&first));
            assert_eq!(second.channels["list"].bytes, weight(&long));
        }
    }

    #[test]
    fn only_durable_states_of_the_same_incarnation_are_shown() {
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
