//! Memory of the host that the arguments of one call of a typed component take.
//!
//! It counts as memory of guests, since a caller decides how much it is: a few bytes of JSON can
//! describe a record with thousands of absent fields, and a byte of a `list<u8>` takes 32 bytes.

use crate::memory_meter::MemoryMeter;
use crate::typed::value_error::ValueError;

/// Maximum size of the values of one call in memory, in bytes. It is as much as the JSON of the
/// largest arguments takes in memory.
const MAX_VALUES_BYTES: u64 = 128 << 20;

/// Bytes that are taken from the memory of all guests at a time. Taking those of each value would
/// lock the pool as often. It is a page of linear memory.
const STEP_BYTES: u64 = 64 << 10;

/// The memory of the values of one call.
pub(crate) struct ValuesMemory<'m> {
    meter: &'m mut MemoryMeter,
    /// How often the call has each value in memory.
    copies: u64,
    allowed: u64,
    used: u64,
    /// The number of bytes that the values take, with one share for each copy of them.
    counted: u64,
}

impl<'m> ValuesMemory<'m> {
    /// Creates the memory of a call that has each value in memory `copies` times.
    pub(crate) fn new(meter: &'m mut MemoryMeter, copies: u64) -> Self {
        // Values that no guest can hold exceed a limit instead of waiting for other guests.
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
    /// The error of values that exceed the limit, or that do not fit among all guests now.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), ValueError> {
        let used = self.used.saturating_add(bytes as u64);
        if used > self.allowed {
            return Err(ValueError::limit(format!(
                "the arguments exceed the limit of {} bytes in memory; pass less at once",
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

    /// Returns the meter of a guest, which can hold 28 MiB.
    fn meter() -> MemoryMeter {
        MemoryMeter::new(0, memory_of(64 << 20))
    }

    #[test]
    fn values_have_the_memory_of_one_guest() {
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
    fn values_that_do_not_fit_among_all_guests_are_refused() {
        let mut meter = meter();
        let mut memory = ValuesMemory::new(&mut meter, 1);
        memory.allowed = u64::MAX;
        let refused = memory.take(33 * MIB).map_err(|error| error.fault());
        assert_eq!(refused, Err(ValueFault::GuestsMemory));
        assert_eq!(memory.take(MIB), Ok(()));
    }
}
