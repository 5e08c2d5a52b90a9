// What a user can do with the newest run of a thread: cancel or drain it while it runs, and resume
// or retry it afterwards.
import { Button, toast } from "@wattle/page";
import { type ReactNode, useRef, useState } from "react";
import { Guarded } from "../access/access.tsx";
import type { RunPlace, ThreadPlace } from "../api/log.ts";
import { cancelRun } from "../api/run.ts";
import { type Thread, useQuietThread } from "../api/thread.ts";
import { type Go, interruptRoute, RouteLink, runRoute, useGoLater } from "../router/links.tsx";
import { useShortcut } from "../shell/keys.tsx";
import { Confirm, Refusal, useAction } from "./action.tsx";
import { Migrate } from "./migrate.tsx";
import { drain, readPendingCalls, resume } from "./requests.ts";
import { CONTROL } from "./texts.ts";
import styles from "./travel.module.css";

/** The key that leads to the actions. */
const KEY = "a";

/**
 * Returns how a thread continues without answers: `retry` executes failed tasks again. A thread
 * that runs, waits for an answer, or has reached its end does not.
 */
export function continuationOf(thread: Thread): "resume" | "retry" | undefined {
  const { status, next, interrupts, set_aside } = thread;
  const isWaiting = interrupts.length > 0 || set_aside != null;
  if (status === "running" || next.length === 0 || isWaiting) return undefined;
  return status === "error" ? "retry" : "resume";
}

interface ThreadControlProps {
  thread: Thread;
  tenant: string | undefined;
}

/** The actions of the view of a thread, if the key permits them. */
export function ThreadControl({ thread, tenant }: ThreadControlProps) {
  const { thread: id, run, status } = thread;
  const place = { thread: id, tenant };
  const continuation = continuationOf(thread);
  return (
    <Guarded need="write">
      <Actions>
        {status === "running" && run != null && <Running place={{ ...place, run }} isStarted />}
        {continuation !== undefined && <Continue place={place} kind={continuation} />}
        <Answer place={place} thread={thread} />
        {status !== "running" && <Migrate place={place} thread={thread} />}
      </Actions>
    </Guarded>
  );
}

interface RunControlProps {
  place: RunPlace;
  /** `undefined` until it is known. */
  status: string | undefined;
}

/** The actions of the view of a run, if there are any and the key permits them. */
export function RunControl({ place, status }: RunControlProps) {
  const isStarted = status === "running";
  const isOver = status !== undefined && !isStarted && status !== "pending";
  if (status === undefined || status === "completed") return null;
  return (
    <Guarded need="write">
      <Actions>
        {isOver ? <Ended place={place} /> : <Running place={place} isStarted={isStarted} />}
      </Actions>
    </Guarded>
  );
}

/** Buttons and links, the first of which gets the focus by a key. */
function Actions({ children }: { children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  useShortcut(KEY, CONTROL.toActions, () => {
    box.current?.querySelector<HTMLElement>("button, a")?.focus();
  });
  return (
    // biome-ignore lint/a11y/useSemanticElements: buttons, not a set of fields.
    <div ref={box} className={styles.actions} role="group" aria-label={CONTROL.actions}>
      {children}
    </div>
  );
}

/** Drains or cancels a run. One that waits for its turn can only be cancelled. */
function Running({ place, isStarted }: { place: RunPlace; isStarted: boolean }) {
  const [isAsking, setAsking] = useState(false);
  const draining = useAction(async () => {
    await drain(place);
    toast(CONTROL.drained);
  });
  const cancelling = useAction(async () => {
    await cancelRun(place);
    setAsking(false);
    toast(CONTROL.cancelled);
  });
  const ask = () => {
    cancelling.forget();
    setAsking(true);
  };
  return (
    <>
      {isStarted && (
        <Button busy={draining.isBusy} onClick={draining.act} title={CONTROL.drainNote}>
          {CONTROL.drain}
        </Button>
      )}
      <Button kind="danger" onClick={ask}>
        {CONTROL.cancel}
      </Button>
      <Refusal error={draining.refusal} />
      <Confirm
        open={isAsking}
        title={CONTROL.cancelTitle}
        name={CONTROL.cancelNow}
        action={cancelling}
        onClose={() => setAsking(false)}
      >
        <p>{isStarted ? CONTROL.cancelNote : CONTROL.cancelPendingNote}</p>
      </Confirm>
    </>
  );
}

/** What continues a run that has ended, if it is the newest one of its thread. */
function Ended({ place }: { place: RunPlace }) {
  const { data } = useQuietThread(place);
  if (data?.run !== place.run) return null;
  const continuation = continuationOf(data);
  return (
    <>
      {continuation !== undefined && <Continue place={place} kind={continuation} />}
      <Answer place={place} thread={data} />
    </>
  );
}

/** The link to the pending interrupts of a thread, which continues with answers. */
function Answer({ place, thread }: { place: ThreadPlace; thread: Thread }) {
  const [first] = thread.interrupts;
  if (first === undefined) return null;
  return (
    <RouteLink to={interruptRoute(place, first.id)}>
      {CONTROL.answer(thread.interrupts.length)}
    </RouteLink>
  );
}

interface ContinueProps {
  place: ThreadPlace;
  kind: "resume" | "retry";
}

/** Resumes a thread. Asks first if calls in doubt would be made again. */
function Continue({ place, kind }: ContinueProps) {
  const { thread, tenant } = place;
  const goLater = useGoLater();
  const [undecided, setUndecided] = useState(0);
  const resuming = useAction(async (go: Go) => {
    const { run } = await resume(place);
    setUndecided(0);
    go(runRoute({ thread, run, tenant }));
  });
  const starting = useAction(async () => {
    const go = goLater();
    const calls = await readPendingCalls(place);
    const count = calls.filter(({ decision }) => decision == null).length;
    setUndecided(count);
    if (count === 0) resuming.act(go);
  });
  const isBusy = starting.isBusy || resuming.isBusy;
  return (
    <>
      <Button kind="primary" busy={isBusy} onClick={starting.act}>
        {CONTROL[kind]}
      </Button>
      <Refusal error={starting.refusal ?? (undecided > 0 ? undefined : resuming.refusal)} />
      <Confirm
        open={undecided > 0}
        title={CONTROL.doubtTitle}
        name={CONTROL.repeat}
        action={{ ...resuming, act: () => resuming.act(goLater()) }}
        onClose={() => setUndecided(0)}
      >
        <p>{CONTROL.doubtNote(undecided)}</p>
      </Confirm>
    </>
  );
}
