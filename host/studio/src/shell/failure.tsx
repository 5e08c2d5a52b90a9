// What is shown in place of what is being read, or could not be read.
import { Alert, Button } from "@wattle/page";
import { missingIn } from "../access/unauthorized.ts";
import { isMissing } from "../api/missing.ts";
import { visible } from "../part/text.tsx";
import { TEXTS } from "./texts.ts";

interface FailureProps {
  error: Error;
  /** What could not be read, if there is more than one such thing in the view. */
  what?: string;
  /** What is said if the host does not have it; by default what the host says. */
  notFound?: string;
  /** What is said if the request has to name a tenant; by default what the host says. */
  tenantNeeded?: string;
  onRetry: () => void;
}

/** A failed reading, with a button for another attempt. */
export function Failure({ error, what, notFound, tenantNeeded, onRetry }: FailureProps) {
  if (tenantNeeded !== undefined && missingIn(error)?.what === "tenant") {
    return <Alert kind="warning">{tenantNeeded}</Alert>;
  }
  const reason = isMissing(error) ? (notFound ?? error.message) : error.message;
  const text = what === undefined ? reason : `${what}: ${reason}`;
  return <Alert actions={<Button onClick={onRetry}>{TEXTS.retry}</Button>}>{visible(text)}</Alert>;
}

/** Something that is read. `data` is absent if the view shows nothing before all of it was read. */
interface Read {
  error: Error | null;
  data?: unknown;
  refetch: () => unknown;
}

/** Returns several readings as one, with the first error. `refetch` repeats those that failed. */
export function together(...reads: readonly Read[]): Read {
  const failed = reads.filter(({ error }) => error !== null);
  return {
    error: failed[0]?.error ?? null,
    refetch: () => Promise.all(failed.map(({ refetch }) => refetch())),
  };
}

interface ReadingProps extends Omit<FailureProps, "error" | "onRetry"> {
  of: Read;
  /** What is said before there is data. */
  text?: string;
}

/** Says that something is being read, or why it cannot be. */
export function Reading({ of, text = TEXTS.reading, ...failure }: ReadingProps) {
  const { error, data, refetch } = of;
  if (error !== null) return <Failure {...failure} error={error} onRetry={() => void refetch()} />;
  return data === undefined ? <p role="status">{text}</p> : null;
}
