// The lines of a log: what each event says, in short. Values of events are read when they are shown.
import type { EventOutline } from "../api/log.ts";
import { cut } from "../part/cut.ts";
import { digestText } from "../part/digest.ts";

export interface LogLine {
  readonly seq: number;
  readonly atMs: number;
  readonly type: string;
  readonly namespace: string;
  /** The node of the event; an empty text if it has none. */
  readonly node: string;
  readonly text: string;
}

/** Characters of the text of a line. A run can have very many lines. */
const TEXT_CHARS = 200;

/** Returns the line of an event. */
export function lineOf(event: EventOutline): LogLine {
  const { seq, at_ms: atMs, type, namespace = "" } = event;
  const node = "node" in event ? event.node : "";
  return {
    seq,
    atMs,
    type,
    namespace,
    node,
    text: cut(textOf(event), TEXT_CHARS),
  };
}

function textOf(event: EventOutline): string {
  switch (event.type) {
    case "run_started":
      return `${event.graph}: ${event.reason}`;
    case "run_ended":
      return joined(event.status, failureText(event.failure));
    case "task_started":
      return `superstep ${event.step}, attempt ${event.attempt}`;
    case "task_finished":
      return event.written.map(({ channel }) => channel).join(", ");
    case "task_failed":
      return failureText(event.failure);
    case "call_started":
      return joined(event.function, event.summary);
    case "called":
      return joined(event.function, event.summary, failureText(event.failure));
    case "streamed":
      return event.deltas.map((delta) => ("text" in delta ? delta.text : delta.kind)).join("");
    case "asked":
      return excerptText(event.payload.value);
    case "checkpointed":
      return joined(`${event.checkpoint}`, event.source, event.changed.join(", "));
    default:
      return otherText(event);
  }
}

/** Returns the text of an event that changes the thread, or of a message of a guest. */
function otherText(event: EventOutline): string {
  switch (event.type) {
    case "answered":
      return event.principal?.user ?? event.principal?.key ?? "";
    case "reopened":
      return `to checkpoint ${event.to}`;
    case "forked":
      return `from checkpoint ${event.from}`;
    case "settled":
      return event.decision.kind;
    case "migrated":
      return `${digestText(event.from)} → ${digestText(event.to)}`;
    case "custom":
      return joined(event.name, excerptText(event.data.value));
    case "progress":
      return event.message;
    case "log":
      return `${event.level}: ${event.message}`;
    default:
      return "";
  }
}

function failureText(failure: { code: string; message: string } | null | undefined): string {
  return failure == null ? "" : `${failure.code}: ${failure.message}`;
}

function excerptText(value: unknown): string {
  return value === undefined ? "" : JSON.stringify(value);
}

function joined(...texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join(" · ");
}
