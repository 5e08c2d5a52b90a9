// A form of a schema, whose value is sent to the host.
import { Alert, Button } from "@wattle/page";
import { type FormEvent, type ReactNode, useMemo, useRef, useState } from "react";
import { focusAt, rendered } from "../inbox/focus.ts";
import { type Checked, checked } from "../part/schema-form/check.ts";
import { draftOf } from "../part/schema-form/draft.ts";
import { fieldOf } from "../part/schema-form/field.ts";
import { SchemaForm } from "../part/schema-form/form.tsx";
import { visible } from "../part/text.tsx";
import { titled } from "./input.ts";
import styles from "./play.module.css";
import { TEXTS } from "./texts.ts";

interface RequestFormProps {
  /** Name of the form. */
  label: string;
  schema: unknown;
  /** Text of the button, and while the request is sent. */
  submit: string;
  busy: string;
  isBusy: boolean;
  /** Why the host refused the last request. */
  refusal: string | undefined;
  onSubmit: (value: unknown) => void;
  /** Further buttons. */
  children?: ReactNode;
}

const NO_ERRORS: Checked["errors"] = new Map();

/** The fields and the button. What was entered stays, so that it can be sent again. */
export function RequestForm({ schema, onSubmit, refusal, ...props }: RequestFormProps) {
  const box = useRef<HTMLFormElement>(null);
  const field = useMemo(() => fieldOf(titled(schema, TEXTS.input)), [schema]);
  const [draft, setDraft] = useState(() => draftOf(field));
  const [errors, setErrors] = useState(NO_ERRORS);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (props.isBusy) return;
    const { value, errors: found } = checked(field, draft);
    setErrors(found);
    const [first] = found.keys();
    if (first === undefined) onSubmit(value);
    else rendered(() => focusAt(box.current, first));
  };
  return (
    <form ref={box} className={styles.form} aria-label={props.label} noValidate onSubmit={submit}>
      <SchemaForm
        field={field}
        draft={draft}
        onDraft={(next) => {
          setDraft(next);
          // A problem is shown when the form is sent, and goes away when it is solved.
          if (errors.size > 0) setErrors(checked(field, next).errors);
        }}
        errors={errors}
      />
      {errors.size > 0 && <Alert>{TEXTS.problems(errors.size)}</Alert>}
      {refusal !== undefined && <Alert>{TEXTS.refused(visible(refusal))}</Alert>}
      <div className={styles.buttons}>
        <Button type="submit" kind="primary" busy={props.isBusy}>
          {props.isBusy ? props.busy : props.submit}
        </Button>
        {props.children}
      </div>
    </form>
  );
}
