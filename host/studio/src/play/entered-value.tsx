// A value of a schema that is entered beside the input of a request.
import { type ReactNode, type RefObject, useMemo, useRef } from "react";
import { draftOf } from "../part/schema-form/draft.ts";
import { type Field, fieldOf } from "../part/schema-form/field.ts";
import { SchemaForm } from "../part/schema-form/form.tsx";
import { type Entered, Problems, useEntered } from "../part/schema-form/use-entered.tsx";
import { titled } from "./input.ts";
import styles from "./play.module.css";

/** What is entered. */
export interface EnteredValue {
  box: RefObject<HTMLDivElement | null>;
  field: Field;
  entered: Entered;
  /** Returns the value in a tuple; `undefined` if it has a problem, which is shown then. */
  read: () => [value: unknown] | undefined;
}

/** Returns what is entered as a value of a schema. */
export function useEnteredValue(schema: unknown, title: string): EnteredValue {
  const box = useRef<HTMLDivElement>(null);
  const field = useMemo(() => fieldOf(titled(schema, title)), [schema, title]);
  const entered = useEntered(field, () => draftOf(field), box);
  const read = () => {
    const found: [value: unknown][] = [];
    entered.submit(entered.draft, (value) => found.push([value]));
    return found[0];
  };
  return { box, field, entered, read };
}

interface ValueFieldsProps {
  value: EnteredValue;
  /** True if requests have the value. */
  isGiven: boolean;
  /** What is above the fields. */
  children?: ReactNode;
}

/** The fields of the value, if requests have it. */
export function ValueFields({ value, isGiven, children }: ValueFieldsProps) {
  const { box, field, entered } = value;
  const { draft, errors, change } = entered;
  return (
    <div ref={box} className={styles.part}>
      {children}
      {isGiven && (
        <>
          <SchemaForm field={field} draft={draft} onDraft={change} errors={errors} />
          <Problems errors={errors} />
        </>
      )}
    </div>
  );
}
