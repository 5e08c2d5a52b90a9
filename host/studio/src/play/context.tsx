// The context of the runs that the playground starts. Every node of a run gets it.
import { type RefObject, useMemo, useRef, useState } from "react";
import { contextSchemaOf } from "../graph/definition.ts";
import { Checkbox } from "../part/checkbox.tsx";
import { draftOf } from "../part/schema-form/draft.ts";
import { type Field, fieldOf } from "../part/schema-form/field.ts";
import { SchemaForm } from "../part/schema-form/form.tsx";
import { type Entered, Problems, useEntered } from "../part/schema-form/use-entered.tsx";
import { titled } from "./input.ts";
import styles from "./play.module.css";
import type { GivenContext } from "./read.ts";
import { CONTEXT } from "./texts.ts";

/** What is entered as the context. */
export interface RunContext {
  box: RefObject<HTMLDivElement | null>;
  field: Field;
  entered: Entered;
  /** True if runs get a context. */
  isGiven: boolean;
  setGiven: (isGiven: boolean) => void;
  /** Returns the context of the next run; `undefined` if it has a problem, which is shown then. */
  read: () => GivenContext | undefined;
}

/** Returns what is entered as the context of the runs of a graph. */
export function useRunContext(definition: unknown): RunContext {
  const box = useRef<HTMLDivElement>(null);
  const field = useMemo(
    () => fieldOf(titled(contextSchemaOf(definition), CONTEXT.title)),
    [definition],
  );
  const entered = useEntered(field, () => draftOf(field), box);
  const [isGiven, setGiven] = useState(false);
  const read = () => {
    if (!isGiven) return {};
    const found: GivenContext[] = [];
    entered.submit(entered.draft, (context) => found.push({ context }));
    return found[0];
  };
  return { box, field, entered, isGiven, setGiven, read };
}

/** The fields of the context, if runs get one. */
export function ContextFields({ context }: { context: RunContext }) {
  const { box, field, entered, isGiven, setGiven } = context;
  const { draft, errors, change } = entered;
  return (
    <div ref={box} className={styles.part}>
      <Checkbox checked={isGiven} onChange={setGiven}>
        {CONTEXT.give}
      </Checkbox>
      {isGiven && (
        <>
          <SchemaForm field={field} draft={draft} onDraft={change} errors={errors} />
          <Problems errors={errors} />
        </>
      )}
    </div>
  );
}
