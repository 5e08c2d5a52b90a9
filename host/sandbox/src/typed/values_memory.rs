//! Memory of the host that the arguments of one call of a typed component take.
//!
//! This memory counts as memory of guests, since a caller determines its size: a few bytes of JSON
//! can describe a record with thousands of absent fields, and a byte of a `list<u8>` takes 32
//! bytes.

use crate::memory_meter::MemoryMeter;
use crate::typed::value_error::ValueError;

/// Maximum size of the values of one call in memory, in bytes. The JSON of the largest arguments
/// takes as much memory.
const MAX_VALUES_BYTES: u64 = 128 << 20;

/// Number of bytes that are reserved in the memory of all guests at a time: the size of a page of
/// linear memory. A reservation for each value would lock the pool for each value.
const STEP_BYTES: u64 = 64 << 10;

/// The memory of the values of one call.
pub(crate) struct ValuesMemory<'m> {
    meter: &'m mut MemoryMeter,
    /// Number of copies of each value that the call has in memory.
    copies: u64,
    allowed: u64,
    used: u64,
    /// Number of bytes that are reserved in the memory of all guests for one copy of the values.
    counted: u64,
}

impl<'m> ValuesMemory<'m> {
    /// Creates the count of a call that has `copies` copies of each value in memory.
    pub(crate) fn new(meter: &'m mut MemoryMeter, copies: u64) -> Self {
        // Values that would not fit even without other guests exceed the limit, so that callers do
        // not try again.
        let allowed = MAX_VALUES_BYTES.min(meter.most_values_bytes() / copies);
        Self { meter, copies, allowed, used: 0, counted: 0 }
    }

    /// Returns the number of bytes that the values may take.
    pub(crate) fn allowed(&self) -> u64 {
        self.allowed
    }

    /// Takes bytes for a value.
    ///
    /// # Errors
    ///
    /// An error with `ValueFault::Limit` if the values exceed the limit, or with
    /// `ValueFault::GuestsMemory` if the memory of all guests does not suffice now.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), ValueError> {
        let used = self.used.saturating_add(bytes as u64);
        if used > self.allowed {
            return Err(ValueError::limit(format!(
                "the arguments exceed the limit of {} bytes in memory; pass smaller arguments",
                self.allowed
            )));
        }
        if used > self.counted {
            let counted = used.next_multiple_of(STEP_BYTES).min(self.allowed);
            if !self.meter.hold_values(counted * self.copies) {
                return Err(ValueError::no_memory());
            }
            self.counted = counted;
        }
        self.used = used;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest_pool::tests::memory_of;
    use crate::typed::value_error::ValueFault;

    const MIB: usize = 1 << 20;

    /// Returns the meter of a guest that can hold 28 MiB.
    fn meter() -> MemoryMeter {
        MemoryMeter::new(0, memory_of(64 << 20))
    }

    #[test]
    fn values_take_at_most_the_memory_that_one_guest_can_hold() {
        let mut meter = meter();
        let mut memory = ValuesMemory::new(&mut meter, 1);
        assert_eq!(memory.take(28 * MIB), Ok(()));
        assert_eq!(memory.take(1).map_err(|error| error.fault()), Err(ValueFault::Limit));
    }

    #[test]
    fn memory_of_converted_values_includes_each_copy() {
        let mut meter = meter();
        let mut memory = ValuesMemory::new(&mut meter, 2);
        assert_eq!(memory.allowed(), 14 << 20);
        assert_eq!(memory.take(14 * MIB), Ok(()));
        assert!(!meter.hold_values(28 * (1 << 20) + 1));
    }

    #[test]
    fn values_beyond_the_memory_of_all_guests_are_refused() {
        let mut meter = meter();
        let mut memory = ValuesMemory::new(&mut meter, 1);
        memory.allowed = u64::MAX;
        let refused = memory.take(33 * MIB).map_err(|error| error.fault());
        assert_eq!(refused, Err(ValueFault::GuestsMemory));
        assert_eq!(memory.take(MIB), Ok(()));
    }
}
