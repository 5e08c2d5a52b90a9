// A call of one function outside of any run, which a user can stop.
import { useEffect, useRef, useState } from "react";
import { type Attempt, useAttempt } from "../part/attempt.tsx";

interface Alone<I, E> {
  attempt: Attempt<[I]>;
  /** The end of the newest call; `undefined` while it runs, and if it was stopped. */
  ended: E | undefined;
  isStopped: boolean;
  stop: () => void;
}

/** Returns what calls a function, with the end of its newest call. */
export function useAlone<I, E>(onCall: (input: I, signal: AbortSignal) => Promise<E>): Alone<I, E> {
  const calling = useRef<AbortController>(undefined);
  const [ended, setEnded] = useState<E>();
  const [isStopped, setStopped] = useState(false);
  const attempt = useAttempt(async (input: I) => {
    const controller = new AbortController();
    calling.current = controller;
    setStopped(false);
    setEnded(undefined);
    try {
      const end = await onCall(input, controller.signal);
      setEnded(() => end);
    } catch (error) {
      if (!controller.signal.aborted) throw error;
      setStopped(true);
    }
  });
  // A call whose result nobody will see is not left running.
  useEffect(() => () => calling.current?.abort(), []);
  return { attempt, ended, isStopped, stop: () => calling.current?.abort() };
}
