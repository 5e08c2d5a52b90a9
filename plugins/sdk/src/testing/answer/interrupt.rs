//! Questions, answered in the order of the script.

use serde_json::Value;

use crate::failure::Failure;
use crate::interrupt::Question;
use crate::testing::state::with;

pub(crate) fn ask(question: Question) -> Result<Value, Failure> {
    let answer = with(|state| {
        state.notes.questions.push(question);
        state.answers.pop_front()
    })?;
    // A host would unwind the guest here.
    answer.ok_or_else(|| {
        Failure::new(
            "interrupted",
            "the question has no answer yet; a host pauses the run here, a test sets one with \
             `FakeHost::answer`",
        )
    })
}
