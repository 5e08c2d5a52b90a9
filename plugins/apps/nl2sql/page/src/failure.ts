// Failures of requests, as notices.
import { ApiError, toast } from "@wattle/page";

/** Returns true if the server was not reached, which the banner shows. */
export function isNetwork(error: unknown): boolean {
  return error instanceof ApiError && error.kind === "network";
}

/** Shows a failure, unless the banner shows it. */
export function report(error: unknown): void {
  if (!isNetwork(error)) toast(error instanceof Error ? error.message : String(error), "error");
}
