// What a user enters into a form of a schema, and what is wrong with it.
import { Alert } from "@wattle/page";
import { type RefObject, useState } from "react";
import { type Checked, checked } from "./check.ts";
import type { Draft } from "./draft.ts";
import type { Field } from "./field.ts";
import { focusAt, rendered } from "./focus.ts";
import { TEXTS } from "./texts.ts";

export interface Entered {
  draft: Draft;
  /** Problems by the path of their field. */
  errors: Checked["errors"];
  change: (draft: Draft) => void;
  /** Gives the value of a draft to `act`, or the focus to the first problem of it. */
  submit: (draft: Draft, act: (value: unknown) => void) => void;
}

const NO_ERRORS: Checked["errors"] = new Map();

/** Returns what is entered into the form in `box`. */
export function useEntered(
  field: Field,
  initial: () => Draft,
  box: RefObject<HTMLElement | null>,
): Entered {
  const [draft, setDraft] = useState(initial);
  const [errors, setErrors] = useState(NO_ERRORS);
  const change = (next: Draft) => {
    setDraft(next);
    // A problem is shown when the form is sent, and goes away when it is solved.
    if (errors.size > 0) setErrors(checked(field, next).errors);
  };
  const submit = (chosen: Draft, act: (value: unknown) => void) => {
    const { value, errors: found } = checked(field, chosen);
    setErrors(found);
    const [first] = found.keys();
    if (first === undefined) act(value);
    else rendered(() => focusAt(box.current, first));
  };
  return { draft, errors, change, submit };
}

/** Says how many fields have a problem. */
export function Problems({ errors }: Pick<Entered, "errors">) {
  return errors.size === 0 ? null : <Alert>{TEXTS.problems(errors.size)}</Alert>;
}
