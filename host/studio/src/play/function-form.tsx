// A node or a tool that is called outside of any run, with what a user enters into a form.
import { Button } from "@wattle/page";
import type { ReactNode } from "react";
import { durationText } from "../part/amount.ts";
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import { useAlone } from "./alone.ts";
import { Calls, GrantedFailure, listedCall } from "./calls.tsx";
import styles from "./play.module.css";
import type { NodeCall, ToolCall } from "./read.ts";
import { RequestForm } from "./request-form.tsx";
import { RUN, TEXTS } from "./texts.ts";

/** What the ends of all calls have. The call of a tool ends without interrupts. */
type CallEnd = Pick<ToolCall, "failure" | "duration_us" | "calls" | "omitted_calls"> &
  Pick<Partial<NodeCall>, "interrupts">;

/** The texts of the form. */
type FormTexts = Readonly<Record<"call" | "calling" | "stop" | "stopped" | "failed", string>>;

interface FunctionFormProps<R, E extends CallEnd> {
  /** Name of the form. */
  label: string;
  doc: string;
  /** Sentences about the call. */
  notes: readonly string[];
  /** The schema of the input. */
  schema: unknown;
  texts: FormTexts;
  /** Returns what the function is called with; `undefined` if it has a problem. */
  requestOf: (input: unknown) => R | undefined;
  /** Calls the function. */
  onCall: (request: R, signal: AbortSignal) => Promise<E>;
  /** Returns what is shown of the end before the host calls, and after them. */
  outcomeOf: (end: E) => ReactNode;
  logsOf?: (end: E) => ReactNode;
  /** What is above the form. */
  children?: ReactNode;
}

/** The form, and the end of the newest call. */
export function FunctionForm<R, E extends CallEnd>(props: FunctionFormProps<R, E>) {
  const { texts, requestOf, outcomeOf, logsOf } = props;
  const { attempt, ended, isStopped, stop } = useAlone(props.onCall);
  const call = (input: unknown) => {
    const request = requestOf(input);
    if (request !== undefined) attempt.act(request);
  };
  return (
    <>
      <p>
        <Text>{props.doc}</Text>
      </p>
      <p className="w-note">{[TEXTS.real, ...props.notes].join(" ")}</p>
      {props.children}
      <RequestForm
        label={props.label}
        schema={props.schema}
        submit={texts.call}
        busy={texts.calling}
        isBusy={attempt.isBusy}
        refusal={attempt.refusal}
        onSubmit={call}
      >
        {attempt.isBusy && (
          <Button kind="danger" onClick={stop}>
            {texts.stop}
          </Button>
        )}
      </RequestForm>
      <p role="status">{isStopped ? texts.stopped : ""}</p>
      {ended !== undefined && (
        <section className={styles.result} aria-label={RUN.result}>
          <div className={styles.head}>
            <Status name={statusOf(ended)} />
            <span>{`${RUN.duration}: ${durationText(ended.duration_us)}`}</span>
          </div>
          {ended.failure != null && <GrantedFailure title={texts.failed} failure={ended.failure} />}
          {outcomeOf(ended)}
          <Calls calls={ended.calls.map(listedCall)} omitted={ended.omitted_calls} />
          {logsOf?.(ended)}
        </section>
      )}
    </>
  );
}

/** Returns the status of a call that has ended. */
function statusOf({ failure, interrupts = [] }: CallEnd): string {
  if (failure != null) return "failed";
  return interrupts.length > 0 ? "interrupted" : "completed";
}
