// Something that changes a thread: it runs once at a time, its refusal is shown, and the thread is
// read again afterwards.
import { Alert, ApiError, Button, Dialog, useOnce } from "@wattle/page";
import { type ReactNode, useState } from "react";
import { visible } from "../part/text.tsx";
import { useRefresh } from "./requests.ts";
import { ACTION } from "./texts.ts";

export interface Action<A extends unknown[]> {
  act: (...args: A) => void;
  isBusy: boolean;
  /** Why the host refused it the last time. */
  refusal: Error | undefined;
  /** Removes the refusal. */
  forget: () => void;
}

/** Returns an action. What is shown of threads is read again after it, also after a refusal. */
export function useAction<A extends unknown[]>(work: (...args: A) => Promise<unknown>): Action<A> {
  const refresh = useRefresh();
  const [refusal, setRefusal] = useState<Error>();
  const [run, isBusy] = useOnce(async (...args: A) => {
    setRefusal(undefined);
    try {
      await work(...args);
    } catch (error) {
      setRefusal(error instanceof Error ? error : new Error(String(error)));
    }
    refresh();
  });
  return {
    act: (...args) => void run(...args),
    isBusy,
    refusal,
    forget: () => setRefusal(undefined),
  };
}

/** Says why the host refused a request. */
export function Refusal({ error }: { error: Error | undefined }) {
  if (error === undefined) return null;
  const isConflict = error instanceof ApiError && error.status === 409;
  const reason = visible(error.message);
  return <Alert>{isConflict ? ACTION.conflict(reason) : ACTION.refused(reason)}</Alert>;
}

interface ConfirmProps {
  open: boolean;
  title: string;
  /** Name of the button that confirms. */
  name: string;
  action: Pick<Action<[]>, "act" | "isBusy" | "refusal">;
  onClose: () => void;
  children: ReactNode;
}

/** Asks before something that cannot be undone. It stays in place, so that the focus returns. */
export function Confirm({ open, title, name, action, onClose, children }: ConfirmProps) {
  const { act, isBusy, refusal } = action;
  return (
    <Dialog
      open={open}
      title={title}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{ACTION.keep}</Button>
          <Button kind="danger" busy={isBusy} onClick={act}>
            {name}
          </Button>
        </>
      }
    >
      {children}
      <Refusal error={refusal} />
    </Dialog>
  );
}
