// Something that changes a thread. What is shown of the thread is read again afterwards.
import { ApiError } from "@wattle/page";
import type { ReactNode } from "react";
import { type Attempt, Refusal as PlainRefusal, useAttempt } from "../part/attempt.tsx";
import { Confirm as PlainConfirm } from "../part/confirm.tsx";
import { useRefresh } from "./requests.ts";
import { ACTION } from "./texts.ts";

/** The status of a request for which a thread is not in the right state. */
const CONFLICT = 409;

/** Returns an attempt. What is shown of threads is read again after it, also after a refusal. */
export function useAction<A extends unknown[]>(work: (...args: A) => Promise<unknown>): Attempt<A> {
  const refresh = useRefresh();
  return useAttempt(async (...args: A) => {
    try {
      await work(...args);
    } finally {
      refresh();
    }
  });
}

/** Says why the host refused to change a thread. */
export function Refusal({ error }: { error: Error | undefined }) {
  const isConflict = error instanceof ApiError && error.status === CONFLICT;
  return <PlainRefusal error={error} textOf={isConflict ? ACTION.conflict : undefined} />;
}

interface ConfirmProps {
  open: boolean;
  title: string;
  /** Name of the button that confirms. */
  name: string;
  action: Pick<Attempt<[]>, "act" | "isBusy" | "refusal">;
  onClose: () => void;
  children: ReactNode;
}

/** Asks before an action. */
export function Confirm({ action: { act, isBusy, refusal }, children, ...rest }: ConfirmProps) {
  return (
    <PlainConfirm {...rest} isBusy={isBusy} onConfirm={act}>
      {children}
      <Refusal error={refusal} />
    </PlainConfirm>
  );
}
