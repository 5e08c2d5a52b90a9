//! Limits the number of connections, in total and per address.
//!
//! Each connection occupies a slot. If no slot is free, a new connection replaces one without an
//! open request. If all connections have open requests, a few reserved slots accept connections for
//! the health endpoint and the control plane only.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wattle_api::guard::network_of;
use wattle_api::traffic::Traffic;

use super::activity::Activity;
use super::limits::{CLOSED_AT_ONCE, FILES_LEFT, RESERVED, RESERVED_PER_ADDRESS};

/// File in which Linux reports the maximum number of open files of the process.
const FILE_LIMITS: &str = "/proc/self/limits";

/// The connection slots of all listeners.
pub(super) struct Room {
    most: usize,
    per_address: usize,
    traffic: Arc<Traffic>,
    seats: Mutex<Seats>,
}

#[derive(Default)]
struct Seats {
    taken: HashMap<u64, Taken>,
    next: u64,
    /// Numbers of ordinary connections and of reserved ones, for the control plane only.
    any: Count,
    reserved: Count,
}

/// A connection that occupies a slot.
struct Taken {
    address: IpAddr,
    is_reserved: bool,
    activity: Arc<Activity>,
}

/// Number of connections, in total and by address.
#[derive(Default)]
struct Count {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

impl Count {
    fn of(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).copied().unwrap_or_default()
    }

    fn add(&mut self, address: IpAddr) {
        self.all += 1;
        *self.by_address.entry(address).or_default() += 1;
    }

    fn subtract(&mut self, address: IpAddr) {
        self.all -= 1;
        if let Some(count) = self.by_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }
}

impl Seats {
    fn count(&mut self, is_reserved: bool) -> &mut Count {
        if is_reserved { &mut self.reserved } else { &mut self.any }
    }

    fn add(&mut self, taken: Taken) -> u64 {
        let id = self.next;
        self.next += 1;
        self.count(taken.is_reserved).add(taken.address);
        self.taken.insert(id, taken);
        id
    }

    fn remove(&mut self, id: u64) -> Option<Taken> {
        let taken = self.taken.remove(&id)?;
        self.count(taken.is_reserved).subtract(taken.address);
        Some(taken)
    }

    /// Removes some of the connections without an open request, the longest idle first.
    fn remove_resting(&mut self, of: Option<IpAddr>, is_reserved: bool) -> Vec<Taken> {
        let mut resting: Vec<_> = self
            .taken
            .iter()
            .filter(|(_, taken)| taken.is_reserved == is_reserved)
            .filter(|(_, taken)| of.is_none_or(|address| taken.address == address))
            .filter_map(|(id, taken)| Some((taken.activity.resting_since()?, *id)))
            .collect();
        resting.sort_unstable();
        // Only some are removed, because new connections have no open request until they have sent
        // one.
        let some = resting.len().div_ceil(CLOSED_AT_ONCE).min(CLOSED_AT_ONCE);
        resting.into_iter().take(some).filter_map(|(_, id)| self.remove(id)).collect()
    }
}

impl Room {
    /// Creates `most` slots, or fewer if the process may open too few files.
    pub(super) fn new(most: usize, per_address: usize, traffic: Arc<Traffic>) -> Arc<Self> {
        let files = std::fs::read_to_string(FILE_LIMITS).ok();
        let most = match files.as_deref().and_then(open_files) {
            Some(files) if files - files / FILES_LEFT < most => {
                let fewer = (files - files / FILES_LEFT).max(1);
                tracing::info!(
                    connections = fewer,
                    wanted = most,
                    "the process may open {files} files, so it accepts fewer connections than \
                     `server.connections.max`; raise the limit (`ulimit -n`) for more"
                );
                fewer
            }
            _ => most,
        };
        Arc::new(Self { most, per_address, traffic, seats: Mutex::default() })
    }

    /// Locks the slots and ignores poisoning: no code that can panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Occupies a slot for a connection. Returns `None` if no slot is available.
    pub(super) fn take(self: &Arc<Self>, from: IpAddr, activity: &Arc<Activity>) -> Option<Seat> {
        let address = network_of(from);
        let mut seats = self.lock();
        let is_reserved = if self.make_room(&mut seats, address, false) {
            false
        } else if self.make_room(&mut seats, address, true) {
            true
        } else {
            return None;
        };
        let id = seats.add(Taken { address, is_reserved, activity: activity.clone() });
        self.traffic.opened();
        Some(Seat { room: self.clone(), id, is_reserved })
    }

    /// Returns true if a slot is free, or was freed by closing other connections.
    fn make_room(&self, seats: &mut Seats, address: IpAddr, is_reserved: bool) -> bool {
        let (most, per_address) = if is_reserved {
            (RESERVED, RESERVED_PER_ADDRESS)
        } else {
            (self.most, self.per_address)
        };
        if seats.count(is_reserved).of(address) >= per_address
            && !evict(seats.remove_resting(Some(address), is_reserved))
        {
            return false;
        }
        seats.count(is_reserved).all < most || evict(seats.remove_resting(None, is_reserved))
    }

    /// Closes some connections without an open request.
    pub(super) fn shrink(&self) {
        evict(self.lock().remove_resting(None, false));
    }
}

/// Ends the connections. Returns true if there were any.
fn evict(removed: Vec<Taken>) -> bool {
    for taken in &removed {
        taken.activity.evict();
    }
    !removed.is_empty()
}

/// Parses the soft limit on open files in the format of Linux.
fn open_files(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A connection slot, which is released on drop.
pub(super) struct Seat {
    room: Arc<Room>,
    id: u64,
    /// Whether the slot is reserved for the health endpoint and the control plane.
    pub(super) is_reserved: bool,
}

impl Drop for Seat {
    fn drop(&mut self) {
        // An evicted connection was already removed.
        self.room.lock().remove(self.id);
        self.room.traffic.closed();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wattle_api::traffic::CutReason;

    use super::super::activity::{Times, Underway};
    use super::*;

    fn room(most: usize, per_address: usize) -> Arc<Room> {
        Room::new(most, per_address, Arc::default())
    }

    fn activity() -> Arc<Activity> {
        let long = Duration::from_hours(1);
        Activity::new(Times { head: long, stall: long, idle: long })
    }

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    /// Occupies a slot for a connection with an open request.
    fn busy(room: &Arc<Room>, last: u8) -> Option<(Seat, Underway)> {
        let activity = activity();
        let request = activity.request(false);
        room.take(address(last), &activity).map(|seat| (seat, request))
    }

    #[test]
    fn an_address_above_its_limit_gets_reserved_slots() {
        let room = room(2, 1);
        let first = busy(&room, 1).unwrap();
        assert!(!first.0.is_reserved);
        // The address has reached its limit, so it gets reserved slots, up to the limit of these.
        let reserved: Vec<_> = std::iter::from_fn(|| busy(&room, 1)).collect();
        assert_eq!(reserved.len(), RESERVED_PER_ADDRESS);
        assert!(reserved.iter().all(|(seat, _)| seat.is_reserved));
        assert!(!busy(&room, 2).unwrap().0.is_reserved, "another address gets a place");
        drop((first, reserved));
        assert!(room.lock().taken.is_empty() && room.lock().any.by_address.is_empty());
        assert_eq!(room.traffic.connections(), 0);
    }

    #[tokio::test]
    async fn a_connection_without_a_request_is_replaced() {
        let room = room(2, 2);
        let (oldest, younger) = (activity(), activity());
        let _first = room.take(address(1), &oldest).unwrap();
        let _second = room.take(address(1), &younger).unwrap();
        let third = room.take(address(2), &activity()).unwrap();
        assert!(!third.is_reserved);
        assert_eq!(oldest.overdue().await, CutReason::Evicted);
        let left = tokio::time::timeout(Duration::from_millis(1), younger.overdue()).await;
        assert!(left.is_err(), "the newer one stays");
        assert_eq!(room.lock().any.all, 2);
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_as_one() {
        let room = room(10, 1);
        let from = |text: &str| text.parse::<IpAddr>().unwrap();
        let (one, same, other) = (activity(), activity(), activity());
        let _requests = [one.request(false), same.request(false)];
        let _first = room.take(from("2001:db8::1"), &one).unwrap();
        assert!(room.take(from("2001:db8::2"), &same).unwrap().is_reserved);
        assert!(!room.take(from("2001:db8:0:1::1"), &other).unwrap().is_reserved);
    }

    #[test]
    fn the_limit_on_open_files_is_parsed() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max processes             63432                63432                processes\n\
                    Max open files            1024                 524288               files\n";
        assert_eq!(open_files(text), Some(1_024));
        assert_eq!(open_files("Max open files            unlimited"), None);
    }
}
