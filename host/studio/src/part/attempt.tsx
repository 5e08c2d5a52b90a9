// Something that a user has the host do: it runs once at a time, and its failure is shown.
import { Alert, useOnce } from "@wattle/page";
import { useState } from "react";
import { toError } from "../api/error.ts";
import { visible } from "./text.tsx";

export interface Attempt<A extends unknown[]> {
  act: (...args: A) => void;
  isBusy: boolean;
  /** Why it failed the last time. */
  refusal: Error | undefined;
  /** Removes the failure. */
  forget: () => void;
}

/** Returns what runs `work`, and keeps its failure until the next attempt. */
export function useAttempt<A extends unknown[]>(
  work: (...args: A) => Promise<unknown>,
): Attempt<A> {
  const [refusal, setRefusal] = useState<Error>();
  const forget = () => setRefusal(undefined);
  const [run, isBusy] = useOnce(async (...args: A) => {
    forget();
    try {
      await work(...args);
    } catch (error) {
      setRefusal(toError(error));
    }
  });
  return { act: (...args) => void run(...args), isBusy, refusal, forget };
}

interface RefusalProps {
  error: Error | undefined;
  /** Returns what is said of the reason. */
  textOf?: ((reason: string) => string) | undefined;
}

const TEXTS = { refused: (reason: string) => `The host refused this: ${reason}` };

/** Says why the host refused a request. */
export function Refusal({ error, textOf = TEXTS.refused }: RefusalProps) {
  return error === undefined ? null : <Alert>{textOf(visible(error.message))}</Alert>;
}
