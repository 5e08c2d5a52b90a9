// The context of the runs that the playground starts. Every node of a run gets it.
import { useState } from "react";
import { contextSchemaOf } from "../graph/definition.ts";
import { Checkbox } from "../part/checkbox.tsx";
import { type EnteredValue, useEnteredValue, ValueFields } from "./entered-value.tsx";
import type { GivenContext } from "./read.ts";
import { CONTEXT } from "./texts.ts";

/** What is entered as the context. */
export interface RunContext {
  value: EnteredValue;
  /** True if runs get a context. */
  isGiven: boolean;
  setGiven: (isGiven: boolean) => void;
  /** Returns the context of the next run; `undefined` if it has a problem, which is shown then. */
  read: () => GivenContext | undefined;
}

/** Returns what is entered as the context of the runs of a graph. */
export function useRunContext(definition: unknown): RunContext {
  const value = useEnteredValue(contextSchemaOf(definition), CONTEXT.title);
  const [isGiven, setGiven] = useState(false);
  const read = () => {
    if (!isGiven) return {};
    const found = value.read();
    return found && { context: found[0] };
  };
  return { value, isGiven, setGiven, read };
}

/** The fields of the context, if runs get one. */
export function ContextFields({ context }: { context: RunContext }) {
  const { value, isGiven, setGiven } = context;
  return (
    <ValueFields value={value} isGiven={isGiven}>
      <Checkbox checked={isGiven} onChange={setGiven}>
        {CONTEXT.give}
      </Checkbox>
    </ValueFields>
  );
}
