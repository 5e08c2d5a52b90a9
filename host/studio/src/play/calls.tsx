// The host calls of a run or of a tool, with what would allow those that were denied.
import { Button, copyText, toast } from "@wattle/page";
import { durationText } from "../part/amount.ts";
import { Text } from "../part/text.tsx";
import { RouteLink } from "../router/links.tsx";
import { grantIn, grantText } from "./grant.ts";
import styles from "./play.module.css";
import { CALLS } from "./texts.ts";
import { Words } from "./words.tsx";

/** A host call. */
export interface MadeCall {
  key: string;
  /** Number of tool calls around the call. */
  depth: number;
  function: string;
  summary: string;
  /** `undefined` if the call has not ended. */
  durationUs: number | undefined;
  failure: { code: string; message: string } | undefined;
  /** The route to the event of the call, if there is one. */
  to?: string | undefined;
}

/** Calls that are listed. The view of the run shows all of them. */
const LISTED = 200;

interface CallsProps {
  calls: readonly MadeCall[];
  /** Number of calls that the host left out. */
  omitted?: number | undefined;
}

/** The calls in order. */
export function Calls({ calls, omitted = 0 }: CallsProps) {
  const more = omitted + Math.max(0, calls.length - LISTED);
  return (
    <section className={styles.part} aria-label={CALLS.title}>
      <h3>{CALLS.title}</h3>
      {calls.length === 0 && <p>{CALLS.none}</p>}
      <ol className={styles.calls}>
        {calls.slice(0, LISTED).map((call) => (
          <li key={call.key} data-failed={call.failure !== undefined}>
            <Call call={call} />
          </li>
        ))}
      </ol>
      {more > 0 && <p>{CALLS.more(more)}</p>}
    </section>
  );
}

function Call({ call }: { call: MadeCall }) {
  const { function: name, summary, depth, durationUs, failure, to } = call;
  const text = <Text>{name}</Text>;
  return (
    <>
      <p className={styles.call}>
        <code>{to === undefined ? text : <RouteLink to={to}>{text}</RouteLink>}</code>
        <span className={styles.summary}>
          <Text>{summary}</Text>
        </span>
        {depth > 0 && <small>{CALLS.depth(depth)}</small>}
        <small>{durationUs === undefined ? CALLS.unfinished : durationText(durationUs)}</small>
      </p>
      {failure !== undefined && <Failure failure={failure} />}
    </>
  );
}

/** A failure. That of a missing grant names the line to add. */
export function Failure({ failure }: { failure: { code: string; message: string } }) {
  const { code, message } = failure;
  const grant = code === "denied" ? grantIn(message) : undefined;
  const lines = grant && grantText(grant);
  const copy = async () => {
    try {
      await copyText(lines ?? "");
      toast(CALLS.copied);
    } catch {
      toast(CALLS.notCopied);
    }
  };
  return (
    <div className={styles.failure}>
      <p>
        <code>
          <Text>{code}</Text>
        </code>{" "}
        <Text>{message}</Text>
      </p>
      {lines !== undefined && (
        <>
          <p>{CALLS.denied}</p>
          <Words label={CALLS.lines} text={lines} />
          <Button onClick={() => void copy()}>{CALLS.copy}</Button>
        </>
      )}
    </div>
  );
}
