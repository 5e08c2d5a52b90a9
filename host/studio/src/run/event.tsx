// An event in full, which is read when it is shown, and the documents in it.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { LARGE_AND_FIXED } from "../api/large.ts";
import { type LogEvent, type RunPlace, readEvent } from "../api/log.ts";
import { bytesText } from "../part/amount.ts";
import { JsonTree } from "../part/json-tree.tsx";
import { Section } from "../part/section.tsx";
import { Reading } from "../shell/failure.tsx";
import { PANEL } from "./texts.ts";

interface ReadEventProps {
  place: RunPlace;
  seq: number;
  children: (event: LogEvent) => ReactNode;
}

/** Reads an event, and shows what `children` makes of it. */
export function ReadEvent({ place, seq, children }: ReadEventProps) {
  const { thread, tenant } = place;
  const read = useQuery({
    queryKey: ["event", thread, tenant, seq],
    queryFn: ({ signal }) => readEvent(place, seq, signal),
    // An event does not change.
    ...LARGE_AND_FIXED,
  });
  const { data } = read;
  if (data === null) return <p>{PANEL.gone}</p>;
  if (data !== undefined) return children(data);
  return <Reading of={read} text={PANEL.readingEvent} />;
}

interface ValueProps {
  value: unknown;
  /** Size as JSON, if it is known. */
  bytes: number | undefined;
}

interface DocumentProps extends ValueProps {
  title: string;
}

/** A value of an event, with its size if it is known. */
export function Document({ title, value, bytes }: DocumentProps) {
  return (
    <Section title={title} note={bytes === undefined ? undefined : PANEL.size(bytesText(bytes))}>
      <JsonTree label={title} value={value} />
    </Section>
  );
}

/** The request of a call. */
export function Request({ value, bytes }: ValueProps) {
  return (
    <>
      <Document title={PANEL.request} value={value} bytes={bytes} />
      {isHead(value) && <p>{PANEL.head}</p>}
    </>
  );
}

/** Returns true for the beginning of a request that the log does not have as a whole. */
function isHead(request: unknown): boolean {
  const fields: { head?: unknown; bytes?: unknown } = Object(request);
  return typeof fields.head === "string" && typeof fields.bytes === "number";
}
