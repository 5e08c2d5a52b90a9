// What the host does not have: a response with the status 404.
import { ApiError } from "@wattle/page/api";

/** The status of a response about something that does not exist, or is hidden from the tenant. */
const NOT_FOUND = 404;

/** Returns true if the host has no such document, or hides it from the tenant. */
export function isMissing(error: unknown): boolean {
  return error instanceof ApiError && error.status === NOT_FOUND;
}

/** Returns a document; `undefined` if the host does not have it. */
export async function orMissing<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
