// The host calls of a run or of a tool, with what would allow those that were denied.
import { durationText } from "../part/amount.ts";
import { CopyButton } from "../part/copy-button.tsx";
import { grantIn, grantText } from "../part/grant.ts";
import { Section } from "../part/section.tsx";
import { StatedFailure, type StatedFailureProps } from "../part/stated-failure.tsx";
import { Text } from "../part/text.tsx";
import { RouteLink } from "../router/links.tsx";
import styles from "./play.module.css";
import type { ToolCall } from "./read.ts";
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

/** Returns a host call of a tool or a node that was called alone. */
export function listedCall(call: ToolCall["calls"][number], index: number): MadeCall {
  const { depth, function: name, summary, duration_us, failure } = call;
  return {
    key: String(index),
    depth,
    function: name,
    summary,
    durationUs: duration_us ?? undefined,
    failure: failure ?? undefined,
  };
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
    <Section title={CALLS.title} heading="h3">
      {calls.length === 0 && <p>{CALLS.none}</p>}
      <ol className={styles.calls}>
        {calls.slice(0, LISTED).map((call) => (
          <li key={call.key} data-failed={call.failure !== undefined}>
            <Call call={call} />
          </li>
        ))}
      </ol>
      {more > 0 && <p>{CALLS.more(more)}</p>}
    </Section>
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
      {failure !== undefined && (
        <div className={styles.failure} data-listed>
          <p>
            <code>
              <Text>{failure.code}</Text>
            </code>{" "}
            <Text>{failure.message}</Text>
          </p>
          <MissingGrant failure={failure} />
        </div>
      )}
    </>
  );
}

/** The failure of a run or a tool, with what would allow the call that failed. */
export function GrantedFailure({ title, failure }: StatedFailureProps) {
  return (
    <div className={styles.failure}>
      <StatedFailure title={title} failure={failure} />
      <MissingGrant failure={failure} />
    </div>
  );
}

/** The lines that would allow a call; nothing if it failed for another reason. */
function MissingGrant({ failure: { code, message } }: Pick<StatedFailureProps, "failure">) {
  const grant = code === "denied" ? grantIn(message) : undefined;
  if (grant === undefined) return null;
  const lines = grantText(grant);
  return (
    <>
      <p>{CALLS.denied}</p>
      <Words label={CALLS.lines} text={lines} />
      <CopyButton text={lines} />
    </>
  );
}
