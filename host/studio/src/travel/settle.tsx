// The calls in doubt of a thread, each with the decision about it.
import { useQuery } from "@tanstack/react-query";
import { Button, Panel, Segments, toast } from "@wattle/page";
import { type FormEvent, useState } from "react";
import { Guarded } from "../access/access.tsx";
import type { RunPlace, ThreadPlace } from "../api/log.ts";
import { type Thread, useQuietThread } from "../api/thread.ts";
import { Disclosure } from "../part/disclosure.tsx";
import { type Fact, Facts } from "../part/facts.tsx";
import { JsonEditor } from "../part/json-editor.tsx";
import { parsed } from "../part/parse-json.ts";
import { Text, visible } from "../part/text.tsx";
import { Time } from "../part/time.tsx";
import { RouteLink, runRoute } from "../router/links.tsx";
import { Request } from "../run/event.tsx";
import { Failure } from "../shell/failure.tsx";
import { Refusal, useAction } from "./action.tsx";
import { resultForm } from "./fork.ts";
import { type Decision, type PendingCall, readPendingCalls, settle } from "./requests.ts";
import { SETTLE } from "./texts.ts";
import styles from "./travel.module.css";

/** Interval at which a visible tab reads the calls, in milliseconds. Few threads have any. */
const INTERVAL_MS = 10_000;

type Kind = Decision["kind"];

const KINDS: readonly Kind[] = ["answer", "fail", "retry"];

interface PendingCallsProps {
  thread: Thread;
  tenant: string | undefined;
  /** The only run whose calls are listed. */
  run?: string;
}

/** The calls without a result that a run has started. */
export function PendingCallsOf({ place }: { place: RunPlace }) {
  const { run, tenant } = place;
  const { data } = useQuietThread(place);
  return data && <PendingCalls thread={data} tenant={tenant} run={run} />;
}

/** The calls without a result. While a run is running, its calls are in progress, not in doubt. */
export function PendingCalls({ thread, tenant, run }: PendingCallsProps) {
  const { thread: id, status, interrupts } = thread;
  const place = { thread: id, tenant };
  const isIdle = status !== "running";
  const { data, error, refetch } = useQuery({
    queryKey: ["pending-calls", id, tenant],
    queryFn: () => readPendingCalls(place),
    enabled: isIdle,
    refetchInterval: INTERVAL_MS,
  });
  const calls = (data ?? []).filter((call) => run === undefined || call.run === run);
  if (!isIdle || (error === null && calls.length === 0)) return null;
  return (
    <Panel title={SETTLE.title}>
      {error !== null && <Failure error={error} onRetry={() => void refetch()} />}
      <div className={styles.part}>
        <p>{SETTLE.note}</p>
        {interrupts.length > 0 && <p>{SETTLE.waiting}</p>}
        <ul className={styles.calls} aria-label={SETTLE.title}>
          {calls.map((call) => (
            <li key={pathOf(call)}>
              <Call place={place} call={call} />
            </li>
          ))}
        </ul>
      </div>
    </Panel>
  );
}

/** Returns a text that differs for each pending call of a thread. */
function pathOf({ task, scope, call }: PendingCall): string {
  return [task, ...scope, call].join(" ");
}

function Call({ place, call }: { place: ThreadPlace; call: PendingCall }) {
  const [isOpen, setOpen] = useState(false);
  const { decision, request } = call;
  return (
    <section className={styles.call} aria-label={visible(`${call.function} ${call.summary}`)}>
      <h3>
        <Text>{call.summary === "" ? call.function : call.summary}</Text>
      </h3>
      <Facts facts={factsOf(place, call)} />
      {request !== undefined && <Request value={request} bytes={undefined} />}
      <p>{decision == null ? SETTLE.undecided : SETTLE.decided[decision.kind]}</p>
      <Guarded need="write">
        <Disclosure
          name={decision == null ? SETTLE.decide : SETTLE.decideAgain}
          isOpen={isOpen}
          onToggle={setOpen}
        >
          <SettleForm place={place} call={call} onSettled={() => setOpen(false)} />
        </Disclosure>
      </Guarded>
    </section>
  );
}

function factsOf(place: ThreadPlace, pending: PendingCall): Fact[] {
  const { function: name, node, task, scope, call, at_ms, run, seq } = pending;
  return [
    [SETTLE.function, <Text key="function">{name}</Text>],
    [SETTLE.node, <Text key="node">{node}</Text>],
    [SETTLE.task, <Text key="task">{task}</Text>],
    [SETTLE.number, [...scope, call].join(".")],
    [SETTLE.started, <Time key="started" ms={at_ms} />],
    [
      SETTLE.event,
      <RouteLink key="event" to={runRoute({ ...place, run }, seq)}>
        {SETTLE.inTimeline(seq)}
      </RouteLink>,
    ],
  ];
}

interface SettleFormProps {
  place: ThreadPlace;
  call: PendingCall;
  onSettled: () => void;
}

function SettleForm({ place, call, onSettled }: SettleFormProps) {
  const [kind, setKind] = useState<Kind>("answer");
  const [text, setText] = useState(() => resultForm(call.function));
  const [problem, setProblem] = useState<string>();
  const settling = useAction(async (decision: Decision) => {
    await settle(place, call, decision);
    toast(SETTLE.settled);
    onSettled();
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const decision = decisionOf(kind, text);
    setProblem(decision === undefined ? SETTLE.missing : undefined);
    if (decision !== undefined) settling.act(decision);
  };
  return (
    <form className={styles.form} noValidate onSubmit={submit} aria-label={SETTLE.form}>
      <Segments
        label={SETTLE.form}
        options={KINDS.map((value) => ({ value, name: SETTLE.kinds[value] }))}
        value={kind}
        onChange={setKind}
      />
      <p className="w-note">{SETTLE.kindNotes[kind]}</p>
      {kind === "answer" && (
        <JsonEditor label={SETTLE.result} text={text} onText={setText} error={problem} />
      )}
      <Refusal error={settling.refusal} />
      <Button type="submit" kind="primary" busy={settling.isBusy}>
        {SETTLE.settle}
      </Button>
    </form>
  );
}

/** Returns the decision; `undefined` if the result is no JSON. */
function decisionOf(kind: Kind, text: string): Decision | undefined {
  if (kind !== "answer") return { kind };
  const found = parsed(text);
  return "value" in found ? { kind, answer: found.value } : undefined;
}
