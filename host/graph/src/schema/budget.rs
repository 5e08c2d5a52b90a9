//! The steps that several validations against schemas may take together.

use std::cell::Cell;

use crate::limit::{Exceeded, SCHEMA_STEPS};
use crate::schema::json_pointer::JsonPointer;

/// Steps that validations may still take. Validations that share a budget take at most
/// [`SCHEMA_STEPS`] steps together.
#[derive(Debug)]
pub struct StepBudget {
    left: Cell<u64>,
}

impl Default for StepBudget {
    fn default() -> Self {
        Self { left: Cell::new(SCHEMA_STEPS) }
    }
}

impl StepBudget {
    /// Takes steps for a part of a value. `pointer` is the location of the part.
    pub(super) fn take(&self, steps: u64, pointer: &JsonPointer<'_>) -> Result<(), Exceeded> {
        let left = self.left.get().checked_sub(steps);
        self.left.set(left.unwrap_or_default());
        left.map(drop).ok_or_else(|| {
            let message = format!(
                "validating takes more than {SCHEMA_STEPS} steps, reached at `{pointer}`: make the \
                 value smaller, write fewer values at once, or make the schema simpler"
            );
            Exceeded::new("schema_steps", SCHEMA_STEPS, message)
        })
    }
}
