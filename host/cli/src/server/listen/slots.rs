//! Limits the number of connections, in total and per address.
//!
//! Each connection occupies a slot. If no slot is free, a new connection replaces a connection
//! without an open request. If all connections have open requests, a few reserved slots accept
//! connections, but only for requests to the health endpoint and the control plane.

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
pub(super) struct ConnectionSlots {
    max: usize,
    per_address: usize,
    traffic: Arc<Traffic>,
    table: Mutex<SlotTable>,
}

#[derive(Default)]
struct SlotTable {
    occupied: HashMap<u64, OccupiedSlot>,
    next: u64,
    /// Numbers of ordinary connections, and of reserved connections, which accept only requests to
    /// the control plane.
    ordinary: Count,
    reserved: Count,
}

/// A connection that occupies a slot.
struct OccupiedSlot {
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

impl SlotTable {
    fn count(&mut self, is_reserved: bool) -> &mut Count {
        if is_reserved { &mut self.reserved } else { &mut self.ordinary }
    }

    fn add(&mut self, occupied: OccupiedSlot) -> u64 {
        let id = self.next;
        self.next += 1;
        self.count(occupied.is_reserved).add(occupied.address);
        self.occupied.insert(id, occupied);
        id
    }

    fn remove(&mut self, id: u64) -> Option<OccupiedSlot> {
        let occupied = self.occupied.remove(&id)?;
        self.count(occupied.is_reserved).subtract(occupied.address);
        Some(occupied)
    }

    /// Removes some of the connections without an open request, beginning with the connection that
    /// has been idle for the longest time.
    fn remove_idle(&mut self, of: Option<IpAddr>, is_reserved: bool) -> Vec<OccupiedSlot> {
        let mut idle: Vec<_> = self
            .occupied
            .iter()
            .filter(|(_, occupied)| occupied.is_reserved == is_reserved)
            .filter(|(_, occupied)| of.is_none_or(|address| occupied.address == address))
            .filter_map(|(id, occupied)| Some((occupied.activity.idle_since()?, *id)))
            .collect();
        idle.sort_unstable();
        // Only some connections are removed, because a new connection also has no open request
        // until it has sent one.
        let some = idle.len().div_ceil(CLOSED_AT_ONCE).min(CLOSED_AT_ONCE);
        idle.into_iter().take(some).filter_map(|(_, id)| self.remove(id)).collect()
    }
}

impl ConnectionSlots {
    /// Creates `max` slots, or fewer if the process may open too few files.
    pub(super) fn new(max: usize, per_address: usize, traffic: Arc<Traffic>) -> Arc<Self> {
        let files = std::fs::read_to_string(FILE_LIMITS).ok();
        let max = match files.as_deref().and_then(open_files) {
            Some(files) if files - files / FILES_LEFT < max => {
                let fewer = (files - files / FILES_LEFT).max(1);
                tracing::info!(
                    connections = fewer,
                    wanted = max,
                    "the process may open {files} files, so it accepts fewer connections than \
                     `server.connections.max`; raise the limit (`ulimit -n`) for more"
                );
                fewer
            }
            _ => max,
        };
        Arc::new(Self { max, per_address, traffic, table: Mutex::default() })
    }

    /// Locks the slots and ignores poisoning: no code that holds the lock can panic.
    fn lock(&self) -> MutexGuard<'_, SlotTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Occupies a slot for a connection. Returns `None` if no slot is available.
    pub(super) fn occupy(self: &Arc<Self>, from: IpAddr, activity: &Arc<Activity>) -> Option<Slot> {
        let address = network_of(from);
        let mut table = self.lock();
        let is_reserved = if self.free_slot(&mut table, address, false) {
            false
        } else if self.free_slot(&mut table, address, true) {
            true
        } else {
            return None;
        };
        let id = table.add(OccupiedSlot { address, is_reserved, activity: activity.clone() });
        self.traffic.opened();
        Some(Slot { slots: self.clone(), id, is_reserved })
    }

    /// Returns true if a slot is free, or if a slot was freed by closing another connection.
    fn free_slot(&self, table: &mut SlotTable, address: IpAddr, is_reserved: bool) -> bool {
        let (max, per_address) = if is_reserved {
            (RESERVED, RESERVED_PER_ADDRESS)
        } else {
            (self.max, self.per_address)
        };
        if table.count(is_reserved).of(address) >= per_address
            && !evict(table.remove_idle(Some(address), is_reserved))
        {
            return false;
        }
        table.count(is_reserved).all < max || evict(table.remove_idle(None, is_reserved))
    }

    /// Closes some connections without an open request.
    pub(super) fn close_idle(&self) {
        evict(self.lock().remove_idle(None, false));
    }
}

/// Ends the connections. Returns true if there was at least one connection.
fn evict(removed: Vec<OccupiedSlot>) -> bool {
    for occupied in &removed {
        occupied.activity.evict();
    }
    !removed.is_empty()
}

/// Parses the soft limit on open files in the format of Linux.
fn open_files(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A connection slot, which is released on drop.
pub(super) struct Slot {
    slots: Arc<ConnectionSlots>,
    id: u64,
    /// Whether the slot is reserved for the health endpoint and the control plane.
    pub(super) is_reserved: bool,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // For an evicted connection this has no effect, because it was already removed.
        self.slots.lock().remove(self.id);
        self.slots.traffic.closed();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wattle_api::traffic::CutReason;

    use super::super::activity::{OpenRequest, Timeouts};
    use super::*;

    fn slots(max: usize, per_address: usize) -> Arc<ConnectionSlots> {
        ConnectionSlots::new(max, per_address, Arc::default())
    }

    fn activity() -> Arc<Activity> {
        let long = Duration::from_hours(1);
        Activity::new(Timeouts { head: long, stall: long, idle: long })
    }

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    /// Occupies a slot for a connection with an open request.
    fn busy(slots: &Arc<ConnectionSlots>, last: u8) -> Option<(Slot, OpenRequest)> {
        let activity = activity();
        let request = activity.request(false);
        slots.occupy(address(last), &activity).map(|slot| (slot, request))
    }

    #[test]
    fn an_address_above_its_limit_gets_reserved_slots() {
        let slots = slots(2, 1);
        let first = busy(&slots, 1).unwrap();
        assert!(!first.0.is_reserved);
        // The address has reached its limit of ordinary slots, so it gets reserved slots, up to the
        // limit of reserved slots.
        let reserved: Vec<_> = std::iter::from_fn(|| busy(&slots, 1)).collect();
        assert_eq!(reserved.len(), RESERVED_PER_ADDRESS);
        assert!(reserved.iter().all(|(slot, _)| slot.is_reserved));
        assert!(!busy(&slots, 2).unwrap().0.is_reserved, "another address gets an ordinary slot");
        drop((first, reserved));
        assert!(slots.lock().occupied.is_empty() && slots.lock().ordinary.by_address.is_empty());
        assert_eq!(slots.traffic.connections(), 0);
    }

    #[tokio::test]
    async fn a_new_connection_evicts_the_oldest_one_without_a_request() {
        let slots = slots(2, 2);
        let (oldest, younger) = (activity(), activity());
        let _first = slots.occupy(address(1), &oldest).unwrap();
        let _second = slots.occupy(address(1), &younger).unwrap();
        let third = slots.occupy(address(2), &activity()).unwrap();
        assert!(!third.is_reserved);
        assert_eq!(oldest.wait_for_timeout().await, CutReason::Evicted);
        let left = tokio::time::timeout(Duration::from_millis(1), younger.wait_for_timeout()).await;
        assert!(left.is_err(), "the newer one stays");
        assert_eq!(slots.lock().ordinary.all, 2);
    }

    #[test]
    fn addresses_of_one_ipv6_network_count_as_one() {
        let slots = slots(10, 1);
        let from = |text: &str| text.parse::<IpAddr>().unwrap();
        let (one, same, other) = (activity(), activity(), activity());
        let _requests = [one.request(false), same.request(false)];
        let _first = slots.occupy(from("2001:db8::1"), &one).unwrap();
        assert!(slots.occupy(from("2001:db8::2"), &same).unwrap().is_reserved);
        assert!(!slots.occupy(from("2001:db8:0:1::1"), &other).unwrap().is_reserved);
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
