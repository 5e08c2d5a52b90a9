//! Turns for pieces of long work, and for calls of shared adapters, which owners share; see
//! [`crate::meter`].

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::fair_share::share_of;
use crate::meter::WorkOwner;

/// A fixed number of turns. A turn is the permission to execute one piece of long work. Clones
/// share the turns.
#[derive(Clone)]
pub(crate) struct Turns(Arc<Mutex<TurnQueue<oneshot::Sender<Turn>>>>);

/// A turn that an owner holds. Dropping the value frees the turn, and adds the time for which the
/// owner held the turn to the owner's account.
pub(crate) struct Turn {
    turns: Turns,
    owner: WorkOwner,
    since: Instant,
}

/// A piece of work that waits for its turn. The piece leaves the queue on drop.
struct Waiting {
    turns: Turns,
    owner: WorkOwner,
    number: u64,
    turn: oneshot::Receiver<Turn>,
}

impl Turns {
    /// Creates `at_once` turns.
    pub(crate) fn new(at_once: usize) -> Self {
        Self(Arc::new(Mutex::new(TurnQueue::new(at_once))))
    }

    /// Creates `at_once` turns of which an owner holds at most half of those that other owners do
    /// not hold; see [`share_of`].
    pub(crate) fn in_shares(at_once: usize) -> Self {
        Self(Arc::new(Mutex::new(TurnQueue::in_shares(at_once))))
    }

    /// Returns true if no turn is held, no piece waits, and no clone exists.
    pub(crate) fn is_unused(&self) -> bool {
        // Turns and pieces that wait have clones.
        Arc::strong_count(&self.0) == 1
    }

    /// Waits for a turn. The result is never `None`: the queue keeps the sender of each piece that
    /// waits.
    pub(crate) async fn take(&self, owner: WorkOwner) -> Option<Turn> {
        let mut waiting = match self.request(owner) {
            Ok(turn) => return Some(turn),
            Err(waiting) => waiting,
        };
        (&mut waiting.turn).await.ok()
    }

    /// Takes a free turn, or joins the queue.
    fn request(&self, owner: WorkOwner) -> Result<Turn, Waiting> {
        let mut queue = self.lock();
        if queue.take_free(&owner) {
            return Ok(self.turn(owner));
        }
        let (entry, turn) = oneshot::channel();
        let number = queue.join(&owner, entry);
        Err(Waiting { turns: self.clone(), owner, number, turn })
    }

    fn give(&self, owner: &WorkOwner, held: Duration) {
        let mut queue = self.lock();
        queue.give(owner, u64::try_from(held.as_micros()).unwrap_or(u64::MAX));
        let mut unclaimed = Vec::new();
        while let Some((owner, entry)) = queue.grant() {
            unclaimed.extend(entry.send(self.turn(owner)).err());
        }
        drop(queue);
        // The drop of an unclaimed turn locks the queue again.
        drop(unclaimed);
    }

    fn turn(&self, owner: WorkOwner) -> Turn {
        Turn { turns: self.clone(), owner, since: Instant::now() }
    }

    /// Locks the queue and ignores poisoning: no code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, TurnQueue<oneshot::Sender<Turn>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.give(&self.owner, self.since.elapsed());
    }
}

impl Drop for Waiting {
    /// A turn that was granted already is in the channel. Dropping the channel frees the turn.
    fn drop(&mut self) {
        let entry = self.turns.lock().leave(&self.owner, self.number);
        drop(entry);
    }
}

/// The queue of the pieces of work that wait for a turn. `W` is the type of an entry of the queue.
struct TurnQueue<W> {
    all: usize,
    free: usize,
    /// Whether the turns of an owner are limited to its share.
    has_shares: bool,
    /// Owners with work, and owners without work that have used more time than one of these.
    accounts: HashMap<WorkOwner, Account<W>>,
    /// Number of pieces that have waited so far.
    arrived: u64,
}

struct Account<W> {
    /// Number of turns that the owner holds.
    held: usize,
    /// Time for which the owner held the turns that it has returned, in microseconds. The time is
    /// meaningful only in comparison with that of other owners.
    time: u64,
    /// Pieces that wait, in the order of arrival.
    waiting: BTreeMap<u64, W>,
}

impl<W> Account<W> {
    fn has_work(&self) -> bool {
        self.held > 0 || !self.waiting.is_empty()
    }
}

impl<W> TurnQueue<W> {
    fn new(all: usize) -> Self {
        Self { all, free: all, has_shares: false, accounts: HashMap::new(), arrived: 0 }
    }

    fn in_shares(all: usize) -> Self {
        Self { has_shares: true, ..Self::new(all) }
    }

    /// Returns true if a turn is free for an owner that holds `held` turns.
    fn is_free_for(&self, held: usize) -> bool {
        let others = self.all - self.free - held;
        self.free > 0 && (!self.has_shares || held < share_of(self.all, others))
    }

    /// Takes a free turn for an owner. Returns false if no turn is free for the owner. No piece
    /// waits while a turn is free for its owner.
    fn take_free(&mut self, owner: &WorkOwner) -> bool {
        let held = self.accounts.get(owner).map_or(0, |account| account.held);
        let is_free = self.is_free_for(held);
        if is_free {
            self.free -= 1;
            self.account(owner).held += 1;
        }
        is_free
    }

    /// Adds a piece that waits. Returns its number.
    fn join(&mut self, owner: &WorkOwner, entry: W) -> u64 {
        self.arrived += 1;
        let number = self.arrived;
        self.account(owner).waiting.insert(number, entry);
        number
    }

    /// Removes a piece that waits, unless its turn was granted.
    fn leave(&mut self, owner: &WorkOwner, number: u64) -> Option<W> {
        let entry = self.accounts.get_mut(owner)?.waiting.remove(&number);
        self.forget_idle();
        entry
    }

    /// Frees a turn that an owner has held for `time` microseconds.
    fn give(&mut self, owner: &WorkOwner, time: u64) {
        self.free += 1;
        if let Some(account) = self.accounts.get_mut(owner) {
            account.held -= 1;
            // A piece counts, however short it is.
            account.time = account.time.saturating_add(time.max(1));
        }
        self.forget_idle();
    }

    /// Grants a free turn to the piece that is next in the queue. Returns the owner and the entry
    /// of the piece. Returns `None` if no piece waits for whose owner a turn is free.
    fn grant(&mut self) -> Option<(WorkOwner, W)> {
        if self.free == 0 {
            return None;
        }
        let firsts = self.accounts.iter().filter_map(|(owner, account)| {
            let (number, _) = account.waiting.first_key_value()?;
            let rank = (account.held, account.time, *number);
            self.is_free_for(account.held).then_some((rank, owner))
        });
        let (_, owner) = firsts.min_by_key(|(rank, _)| *rank)?;
        let owner = owner.clone();
        let account = self.accounts.get_mut(&owner)?;
        let (_, entry) = account.waiting.pop_first()?;
        account.held += 1;
        self.free -= 1;
        Some((owner, entry))
    }

    /// Returns the account of an owner that gets work.
    fn account(&mut self, owner: &WorkOwner) -> &mut Account<W> {
        let least = self.least_time().unwrap_or_default();
        let new = || Account { held: 0, time: least, waiting: BTreeMap::new() };
        let account = self.accounts.entry(owner.clone()).or_insert_with(new);
        if !account.has_work() {
            account.time = account.time.max(least);
        }
        account
    }

    /// Returns the least time of all owners with work.
    fn least_time(&self) -> Option<u64> {
        let busy = self.accounts.values().filter(|account| account.has_work());
        busy.map(|account| account.time).min()
    }

    /// Forgets owners without work that are ahead of no other owner.
    fn forget_idle(&mut self) {
        let least = self.least_time().unwrap_or(u64::MAX);
        self.accounts.retain(|_, account| account.has_work() || account.time > least);
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    use std::pin::pin;

    use futures::{FutureExt as _, poll};
    use proptest::prelude::{any, prop, prop_assert, proptest};

    use super::*;

    const GREEDY: &str = "greedy";
    const OTHER: &str = "other";

    fn owner(name: &str) -> WorkOwner {
        WorkOwner::Server(name.into())
    }

    /// Returns the owner of the piece that gets the free turn.
    fn next(queue: &mut TurnQueue<()>) -> WorkOwner {
        queue.grant().unwrap().0
    }

    #[test]
    fn owner_that_held_turns_for_the_shortest_time_is_next() {
        let (mut queue, a, b) = (TurnQueue::new(1), owner("a"), owner("b"));
        assert!(queue.take_free(&a) && !queue.take_free(&b));
        for owner in [&a, &a, &b, &b, &b] {
            queue.join(owner, ());
        }
        queue.give(&a, 100);
        assert_eq!(next(&mut queue), b);
        queue.give(&b, 60);
        assert_eq!(next(&mut queue), b);
        queue.give(&b, 60);
        assert_eq!(next(&mut queue), a);
        queue.give(&a, 1);
        assert_eq!(next(&mut queue), a);
    }

    #[test]
    fn owner_that_holds_the_fewest_turns_is_next() {
        let (mut queue, a, b) = (TurnQueue::new(2), owner("a"), owner("b"));
        assert!(queue.take_free(&a) && queue.take_free(&b));
        queue.join(&a, ());
        queue.join(&b, ());
        queue.give(&b, 1_000);
        assert_eq!(next(&mut queue), b);
        assert!(queue.grant().is_none());
    }

    #[test]
    fn owner_that_arrives_starts_with_the_least_time_of_the_others() {
        let (mut queue, a, b) = (TurnQueue::new(1), owner("a"), owner("b"));
        assert!(queue.take_free(&a));
        queue.join(&a, ());
        queue.give(&a, 100);
        assert_eq!(next(&mut queue), a);
        queue.join(&a, ());
        queue.join(&b, ());
        queue.join(&b, ());
        assert_eq!(queue.accounts[&b].time, 100);
        queue.give(&a, 10);
        assert_eq!(next(&mut queue), b);
        queue.give(&b, 20);
        assert_eq!(next(&mut queue), a);
    }

    #[test]
    fn owner_without_work_is_remembered_while_it_has_used_more_time_than_another() {
        let (mut queue, a, b) = (TurnQueue::<()>::new(2), owner("a"), owner("b"));
        assert!(queue.take_free(&a) && queue.take_free(&b));
        queue.give(&a, 100);
        assert!(queue.take_free(&a));
        assert_eq!(queue.accounts[&a].time, 100, "the owner has work again");
        queue.give(&a, 100);
        assert!(queue.take_free(&b));
        queue.give(&b, 300);
        assert!(!queue.accounts.contains_key(&a));
        queue.give(&b, 1);
        assert!(queue.accounts.is_empty());
    }

    #[test]
    fn owner_holds_at_most_half_of_the_turns_that_others_leave() {
        let (mut queue, a, b, c) = (TurnQueue::in_shares(8), owner("a"), owner("b"), owner("c"));
        let mut fill = |owner: &WorkOwner| (0..8).filter(|_| queue.take_free(owner)).count();
        assert_eq!((fill(&a), fill(&b), fill(&c)), (4, 2, 1));
        for owner in [&a, &b, &c] {
            queue.join(owner, ());
        }
        assert!(queue.grant().is_none(), "the free turn is for a further owner");
        queue.give(&a, 100);
        assert_eq!(next(&mut queue), c);
        assert!(queue.grant().is_none(), "a holds three turns, and the others hold four");
        assert!(queue.take_free(&owner("d")));
    }

    #[test]
    fn only_turn_goes_to_the_owner_that_has_held_it_for_the_shortest_time() {
        let (mut queue, a, b) = (TurnQueue::in_shares(1), owner("a"), owner("b"));
        assert!(queue.take_free(&a) && !queue.take_free(&b));
        for owner in [&a, &a, &b] {
            queue.join(owner, ());
        }
        queue.give(&a, 100);
        assert_eq!(next(&mut queue), b);
        queue.give(&b, 60);
        assert_eq!(next(&mut queue), a);
    }

    #[tokio::test]
    async fn pieces_of_one_owner_wait_in_order_and_another_owner_overtakes_them() {
        let turns = Turns::new(1);
        let held = turns.take(owner("a")).await;
        let mut first = pin!(turns.take(owner("a")));
        let mut second = pin!(turns.take(owner("a")));
        let mut other = pin!(turns.take(owner("b")));
        assert!(poll!(first.as_mut()).is_pending() && poll!(second.as_mut()).is_pending());
        assert!(poll!(other.as_mut()).is_pending());
        drop(held);
        assert!(poll!(first.as_mut()).is_pending());
        drop(other.await);
        assert!(poll!(second.as_mut()).is_pending());
        drop(first.await);
        assert!(second.await.is_some());
    }

    #[tokio::test]
    async fn piece_that_stops_waiting_does_not_block_the_queue() {
        let turns = Turns::new(1);
        let wait = || Box::pin(turns.take(owner("b")));
        let held = turns.take(owner("a")).await;
        let (mut leaves, mut stays) = (wait(), wait());
        assert!(poll!(leaves.as_mut()).is_pending() && poll!(stays.as_mut()).is_pending());
        drop(leaves);
        assert_eq!(turns.lock().accounts[&owner("b")].waiting.len(), 1);
        drop(held);
        // The turn was granted to a piece that does not take it.
        drop(stays);
        assert!(turns.lock().accounts.is_empty());
        assert!(wait().now_or_never().is_some(), "the turn was returned");
    }

    /// Pieces on the turns of a queue, each with its owner and its time, in simulated time.
    struct Simulation {
        queue: TurnQueue<(&'static str, u64)>,
        now: u64,
        /// Pieces that have begun, by their ends and their order.
        begun: BinaryHeap<Reverse<(u64, usize, &'static str, u64)>>,
        count: usize,
        /// Times of the pieces of the other owner, which always has waiting pieces after its
        /// arrival.
        other: Box<dyn Iterator<Item = u64>>,
        has_come: bool,
        /// Time for which the greedy owner has held turns since the other owner came, minus the
        /// time for which the other owner has held turns.
        lead: i64,
        largest_lead: i64,
    }

    impl Simulation {
        fn new(turns: usize, other: Vec<u64>) -> Self {
            Self {
                queue: TurnQueue::new(turns),
                now: 0,
                begun: BinaryHeap::new(),
                count: 0,
                other: Box::new(other.into_iter().cycle()),
                has_come: false,
                lead: 0,
                largest_lead: 0,
            }
        }

        fn arrive(&mut self, name: &'static str, time: u64) {
            if self.queue.take_free(&owner(name)) {
                self.begin(name, time);
            } else {
                self.queue.join(&owner(name), (name, time));
            }
        }

        fn other_arrives(&mut self) {
            let time = self.other.next().unwrap();
            self.arrive(OTHER, time);
        }

        fn begin(&mut self, name: &'static str, time: u64) {
            self.count += 1;
            self.begun.push(Reverse((self.now + time, self.count, name, time)));
        }

        /// Lets time pass in which no piece ends.
        fn pass(&mut self, until: u64) {
            let passed = i64::try_from(until - self.now).unwrap();
            self.now = until;
            for Reverse((_, _, name, _)) in self.begun.iter().filter(|_| self.has_come) {
                self.lead += if *name == GREEDY { passed } else { -passed };
            }
            self.largest_lead = self.largest_lead.max(self.lead);
        }

        /// Ends the piece with the earliest end. Returns false if no piece ends by `until`.
        fn end_next(&mut self, until: u64) -> bool {
            let Some(&Reverse((end, _, name, time))) = self.begun.peek() else { return false };
            if end > until {
                return false;
            }
            self.pass(end);
            self.begun.pop();
            if name == OTHER {
                self.other_arrives();
            }
            self.queue.give(&owner(name), time);
            while let Some((_, (name, time))) = self.queue.grant() {
                self.begin(name, time);
            }
            assert!(!self.has_come || self.queue.free == 0, "no turn is free while pieces wait");
            true
        }

        fn greedy_has_work(&self) -> bool {
            self.queue.accounts.get(&owner(GREEDY)).is_some_and(Account::has_work)
        }
    }

    proptest! {
        /// Pieces of the greedy owner arrive after any pauses, alone or many at once. If all pieces
        /// take the same time, the lead is a number of pieces.
        #[test]
        fn lead_of_one_owner_over_another_is_bounded_by_the_longest_piece(
            turns in 1_usize..6,
            longest in 1_u64..=20,
            greedy in prop::collection::vec(
                (prop::sample::select(vec![0_u64, 0, 0, 1, 20, 60]), any::<u64>()),
                1..60,
            ),
            other in prop::collection::vec(any::<u64>(), 1..8),
            comes in any::<prop::sample::Index>(),
        ) {
            let time = |raw: u64| 1 + raw % longest;
            let mut simulation = Simulation::new(turns, other.into_iter().map(time).collect());
            let comes = comes.index(greedy.len());
            for (index, (pause, raw)) in greedy.into_iter().enumerate() {
                let until = simulation.now + pause;
                while simulation.end_next(until) {}
                simulation.pass(until);
                simulation.arrive(GREEDY, time(raw));
                if index == comes {
                    simulation.has_come = true;
                    for _ in 0..=turns {
                        simulation.other_arrives();
                    }
                }
            }
            while simulation.greedy_has_work() {
                assert!(simulation.end_next(u64::MAX));
            }
            let most = i64::try_from(turns + 1).unwrap() * i64::try_from(longest).unwrap();
            prop_assert!(simulation.largest_lead <= most, "{}", simulation.largest_lead);
        }
    }
}
