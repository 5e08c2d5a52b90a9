// Implements `interrupt` with the answers of the script, in order.

import { Failure } from "../../failure.ts";
import type { Question } from "../../interrupt.ts";
import type { Json } from "../../json.ts";
import { current } from "../state.ts";

export function ask(question: Question): Json {
  const { notes, answers } = current();
  notes.questions.push(question);
  const answer = answers.shift();
  if (answer !== undefined) return answer;
  // A real host unwinds the guest at this point.
  throw new Failure(
    "interrupted",
    "the interrupt has no answer; a host interrupts the run here, a test sets one with " +
      "`FakeHost.answer`",
  );
}
