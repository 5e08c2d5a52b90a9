// A form of a schema, whose value is sent to the host.
import { Button } from "@wattle/page";
import { type FormEvent, type ReactNode, useMemo, useRef } from "react";
import { Refusal } from "../part/attempt.tsx";
import { draftOf } from "../part/schema-form/draft.ts";
import { fieldOf } from "../part/schema-form/field.ts";
import { SchemaForm } from "../part/schema-form/form.tsx";
import { Problems, useEntered } from "../part/schema-form/use-entered.tsx";
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
  refusal: Error | undefined;
  onSubmit: (value: unknown) => void;
  /** Further buttons. */
  children?: ReactNode;
}

/** The fields and the button. What was entered stays, so that it can be sent again. */
export function RequestForm({ schema, onSubmit, refusal, ...props }: RequestFormProps) {
  const box = useRef<HTMLFormElement>(null);
  const field = useMemo(() => fieldOf(titled(schema, TEXTS.input)), [schema]);
  const { draft, errors, change, ...entered } = useEntered(field, () => draftOf(field), box);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!props.isBusy) entered.submit(draft, onSubmit);
  };
  return (
    <form ref={box} className={styles.form} aria-label={props.label} noValidate onSubmit={submit}>
      <SchemaForm field={field} draft={draft} onDraft={change} errors={errors} />
      <Problems errors={errors} />
      <Refusal error={refusal} />
      <div className={styles.buttons}>
        <Button type="submit" kind="primary" busy={props.isBusy}>
          {props.isBusy ? props.busy : props.submit}
        </Button>
        {props.children}
      </div>
    </form>
  );
}
