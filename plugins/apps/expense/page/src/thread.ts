// A conversation: its documents, its URL and its bookings.
import { ApiError, parameter, replaceUrl, withParameter } from "@wattle/page";
import { endpoints } from "@wattle/page/endpoints";
import type { UIMessage } from "ai";
import type { paths, ThreadDocument } from "./schema.d.ts";

export const call = endpoints<paths>();

/**
 * Channel on which a tab posts the thread id of a changed conversation. Other tabs then update the
 * conversation and the book.
 */
export const CHANNEL = "wattle-expense";

/** Response of `GET /api/threads/{id}`, with messages of the AI SDK. */
export interface Thread extends Omit<ThreadDocument, "messages"> {
  messages: UIMessage[];
}

/** Reads a conversation. Returns `null` if it has no id yet, or does not exist. */
export async function readThread(id: string | undefined): Promise<Thread | null> {
  if (id === undefined) return null;
  try {
    return (await call("get", "/api/threads/{id}", { path: { id } })) as Thread;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

/** Returns the thread id in the URL of the page. */
export const threadInUrl = () => parameter("thread") || undefined;

/** Writes a thread id into the URL of the page, or removes it. */
export const putThreadInUrl = (id: string | undefined) => replaceUrl(withParameter("thread", id));

/**
 * Returns the number of bookings in a conversation. The page reads the book again when the number
 * grows.
 */
export function countBooked(messages: readonly UIMessage[]): number {
  const parts = messages.flatMap((message) => message.parts);
  return parts.filter(
    (part) =>
      part.type === "tool-saveExpenseToLark" &&
      "state" in part &&
      part.state === "output-available",
  ).length;
}
