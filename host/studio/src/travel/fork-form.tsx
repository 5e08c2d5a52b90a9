// The form of a fork, below what is known of a host call or of a checkpoint.
import { Button, Segments } from "@wattle/page";
import { type FormEvent, useState } from "react";
import { Guarded } from "../access/access.tsx";
import type { LogEvent, RunPlace } from "../api/log.ts";
import { Refusal, useAttempt } from "../part/attempt.tsx";
import { Checkbox } from "../part/checkbox.tsx";
import { Disclosure } from "../part/disclosure.tsx";
import { JsonEditor } from "../part/json-editor.tsx";
import { parsed } from "../part/parse-json.ts";
import { compareRoute, useGoLater } from "../router/links.tsx";
import { type Change, isFixed, type Origin, originOf, startFork } from "./fork.ts";
import { FORK } from "./texts.ts";
import styles from "./travel.module.css";

interface ForkProps {
  place: RunPlace;
  event: LogEvent;
}

/**
 * The fork at an event, if one can begin there and the key permits it. At a call whose result the
 * host does not replace, it says so.
 */
export function Fork({ place, event }: ForkProps) {
  const origin = originOf(event);
  if (origin === undefined && !isFixed(event)) return null;
  return (
    <Guarded need="write">
      {origin === undefined ? (
        <p className="w-note">{FORK.fixed}</p>
      ) : (
        <Toggled place={place} origin={origin} />
      )}
    </Guarded>
  );
}

interface PartProps {
  place: RunPlace;
  origin: Origin;
}

function Toggled({ place, origin }: PartProps) {
  const [isOpen, setOpen] = useState(false);
  const name = origin.kind === "call" ? FORK.atCall : FORK.atCheckpoint;
  return (
    <section className={styles.fork} aria-label={name}>
      <Disclosure name={name} isOpen={isOpen} onToggle={setOpen}>
        <ForkForm place={place} origin={origin} />
      </Disclosure>
    </section>
  );
}

function ForkForm({ place, origin }: PartProps) {
  const goLater = useGoLater();
  const [kind, setKind] = useState<"answer" | "failure">("answer");
  const [texts, setTexts] = useState(() => textsOf(origin));
  const [isCopy, setCopy] = useState(true);
  const [problem, setProblem] = useState<string>();
  const starting = useAttempt(async (change: Change) => {
    const go = goLater();
    const forked = await startFork(place, origin, change, isCopy);
    go(compareRoute(place, forked));
  });
  const field = origin.kind === "call" ? kind : "input";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const change = changeOf(origin, field, texts[field]);
    setProblem(change === undefined ? FORK.missing : undefined);
    if (change !== undefined) starting.act(change);
  };
  return (
    <form className={styles.form} noValidate onSubmit={submit}>
      <p className="w-note">{origin.kind === "call" ? FORK.callNote : FORK.checkpointNote}</p>
      {origin.kind === "call" && origin.canFail && <Outcome kind={kind} onKind={setKind} />}
      <Notes origin={origin} />
      <JsonEditor
        label={labelOf(origin, field)}
        text={texts[field]}
        onText={(text) => setTexts({ ...texts, [field]: text })}
        error={problem}
      />
      <Checkbox checked={isCopy} onChange={setCopy}>
        {FORK.copy}
      </Checkbox>
      <Refusal error={starting.refusal} textOf={FORK.refused} />
      <Button type="submit" kind="primary" busy={starting.isBusy}>
        {starting.isBusy ? FORK.starting : FORK.start}
      </Button>
    </form>
  );
}

interface OutcomeProps {
  kind: "answer" | "failure";
  onKind: (kind: "answer" | "failure") => void;
}

function Outcome({ kind, onKind }: OutcomeProps) {
  return (
    <Segments
      label={FORK.outcome}
      options={[
        { value: "answer", name: FORK.answers },
        { value: "failure", name: FORK.fails },
      ]}
      value={kind}
      onChange={onKind}
    />
  );
}

function Notes({ origin }: Pick<PartProps, "origin">) {
  if (origin.kind === "checkpoint") return origin.isEnd ? <p>{FORK.endNote}</p> : null;
  return origin.isTooLong ? <p>{FORK.tooLong}</p> : null;
}

type Texts = Readonly<Record<"answer" | "failure" | "input", string>>;

function textsOf(origin: Origin): Texts {
  if (origin.kind === "checkpoint") return { answer: "", failure: "", input: "" };
  return { answer: origin.answer, failure: origin.failure, input: "" };
}

function labelOf(origin: Origin, field: keyof Texts): string {
  if (field !== "input") return FORK[field];
  return origin.kind === "checkpoint" && origin.isEnd ? FORK.inputNeeded : FORK.input;
}

/** Returns what the fork changes, or `undefined` if the text has no value and one is needed. */
function changeOf(origin: Origin, field: keyof Texts, text: string): Change | undefined {
  const isOptional = origin.kind === "checkpoint" && !origin.isEnd;
  if (isOptional && text.trim() === "") return { kind: "none" };
  const found = parsed(text);
  return "value" in found ? { kind: field, value: found.value } : undefined;
}
