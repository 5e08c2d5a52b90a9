// What a request lacks that the host refused with 401.
import { ApiError } from "@wattle/page";

/** A request lacks a valid key, or the header that names its tenant. */
export type Missing = { what: "key" } | { what: "tenant"; header: string };

/** Returns what the request lacks; `undefined` for any other failure. */
export function missingIn(error: unknown): Missing | undefined {
  if (!(error instanceof ApiError) || error.status !== 401) return undefined;
  const details: unknown = Object(error.body).details;
  const { missing, header }: { missing?: unknown; header?: unknown } = Object(details);
  if (missing === "tenant" && typeof header === "string") return { what: "tenant", header };
  return { what: "key" };
}
