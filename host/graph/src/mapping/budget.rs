//! The budget of a projection: what its expressions and messages may take.

use std::borrow::Cow;
use std::mem;

use serde_json::Value;

use crate::expr::ConditionBudget;
use crate::expr::expression::{CelExpression, Variables};
use crate::json_text::LimitedWriter;
use crate::limit::{CONDITION_STEPS, Exceeded, PROJECTION_STEPS, RENDERED_BYTES, SHORT_JSON_BYTES};
use crate::weight::weight;

/// Steps that take about a millisecond at most.
const SHORT_STEPS: u64 = 10_000;

/// What a projection may still take: steps of its expressions, weight of the values that they
/// yield, and bytes of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectionBudget {
    steps: u64,
    value_bytes: u64,
    message_bytes: u64,
}

impl Default for ProjectionBudget {
    /// Creates the budget of all messages of one event, or of the first file of a run:
    /// [`PROJECTION_STEPS`] and [`RENDERED_BYTES`].
    fn default() -> Self {
        Self { steps: PROJECTION_STEPS, value_bytes: RENDERED_BYTES, message_bytes: RENDERED_BYTES }
    }
}

impl ProjectionBudget {
    /// Creates a budget for work that does not delay other tasks on the same thread.
    #[must_use]
    pub fn short() -> Self {
        Self { steps: SHORT_STEPS, value_bytes: SHORT_JSON_BYTES, message_bytes: SHORT_JSON_BYTES }
    }

    /// Does work within a part of this budget that is at most [short](Self::short). If the work
    /// exceeds the part, it counts as nothing, and can be repeated within this budget.
    ///
    /// # Errors
    ///
    /// Those of the work.
    pub fn within_short<T, E>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let short = Self::short();
        let part = Self {
            steps: self.steps.min(short.steps),
            value_bytes: self.value_bytes.min(short.value_bytes),
            message_bytes: self.message_bytes.min(short.message_bytes),
        };
        let mut left = part;
        let done = work(&mut left)?;
        self.steps -= part.steps - left.steps;
        self.value_bytes -= part.value_bytes - left.value_bytes;
        self.message_bytes -= part.message_bytes - left.message_bytes;
        Ok(done)
    }

    /// Returns the budget of the next file of a run: the files share the steps.
    #[must_use]
    pub fn of_next_file(self) -> Self {
        Self { steps: self.steps, ..Self::default() }
    }

    /// Evaluates an expression. Returns `null` if the evaluation fails, or takes more than
    /// [`CONDITION_STEPS`] by itself.
    pub(super) fn eval<'v>(
        &mut self,
        expression: &CelExpression,
        variables: &Variables<'v>,
    ) -> Result<Cow<'v, Value>, Exceeded> {
        // Evaluating an expression of this length takes time even if it reads no value.
        self.take_steps(expression.text_bytes())?;
        let allowed = self.steps.min(CONDITION_STEPS);
        let budget = ConditionBudget::of(allowed);
        let result = expression.eval_within(variables, &budget);
        self.take_steps(budget.taken_of(allowed))?;
        let value = result.unwrap_or_default();
        if let Cow::Owned(value) = &value {
            self.take_value(value)?;
        }
        Ok(value)
    }

    /// Evaluates an expression like [`Self::eval`], for a value that becomes a part of a message or
    /// of a file.
    pub(super) fn eval_owned(
        &mut self,
        expression: &CelExpression,
        variables: &Variables<'_>,
    ) -> Result<Value, Exceeded> {
        match self.eval(expression, variables)? {
            Cow::Owned(value) => Ok(value),
            Cow::Borrowed(value) => {
                self.take_value(value)?;
                Ok(value.clone())
            }
        }
    }

    /// Returns a value as JSON text, as a part of a message.
    pub(super) fn json(&mut self, value: &Value) -> Result<String, Exceeded> {
        let mut text = LimitedWriter::new(Vec::new(), self.message_bytes);
        // Fails only at the limit of the writer, because all keys of a value are strings.
        serde_json::to_writer(&mut text, value).map_err(|_| bytes_exceeded())?;
        self.message_bytes -= text.written();
        Ok(String::from_utf8(mem::take(text.get_mut())).unwrap_or_default())
    }

    /// Counts bytes of a message.
    pub(super) fn take_message_bytes(&mut self, bytes: u64) -> Result<(), Exceeded> {
        self.message_bytes = self.message_bytes.checked_sub(bytes).ok_or_else(bytes_exceeded)?;
        Ok(())
    }

    fn take_value(&mut self, value: &Value) -> Result<(), Exceeded> {
        let left = self.value_bytes.checked_sub(weight(value));
        self.value_bytes = left.ok_or_else(bytes_exceeded)?;
        Ok(())
    }

    fn take_steps(&mut self, steps: u64) -> Result<(), Exceeded> {
        self.steps = self.steps.checked_sub(steps).ok_or_else(steps_exceeded)?;
        Ok(())
    }
}

fn steps_exceeded() -> Exceeded {
    let message = format!(
        "the expressions take more than {PROJECTION_STEPS} steps together: use fewer or shorter \
         expressions, or read less of the state"
    );
    Exceeded::new("projection_steps", PROJECTION_STEPS, message)
}

fn bytes_exceeded() -> Exceeded {
    let message = format!(
        "the values of the expressions, or the messages of one event, take more than \
         {RENDERED_BYTES} bytes together: use less of the event and of the state"
    );
    Exceeded::new("projection_bytes", RENDERED_BYTES, message)
}
