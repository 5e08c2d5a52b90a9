// Where the focus goes in the form of an answer.
import { focusAt } from "../part/schema-form/focus.ts";

/** Id of the form. */
export const ANSWER = "answer";

/** Gives the focus to the first field of the answer. Returns false if there is no form. */
export function focusAnswer(): boolean {
  const form = document.getElementById(ANSWER);
  focusAt(form, "");
  return form !== null;
}
