//! Implements `interrupt` with the answers of the script, in order.

use serde_json::Value;

use crate::failure::Failure;
use crate::interrupt::Question;
use crate::testing::state::with;

pub(crate) fn ask(question: Question) -> Result<Value, Failure> {
    let answer = with(|state| {
        state.notes.questions.push(question);
        state.answers.pop_front()
    })?;
    // A real host unwinds the guest at this point.
    answer.ok_or_else(|| {
        Failure::new(
            "interrupted",
            "the interrupt has no answer; a host interrupts the run here, a test sets one with \
             `FakeHost::answer`",
        )
    })
}
