// A conversation: its documents, its URL and its bookings.
import { ApiError, request } from "@wattle/page";
import type { UIMessage } from "ai";

/**
 * Channel on which a tab posts the thread id of a changed conversation. Other tabs then update the
 * conversation and the book.
 */
export const CHANNEL = "wattle-expense";

/** Response of `GET /api/threads/{id}`. */
export interface Thread {
  threadId: string;
  /** `running` during a run. */
  status: string;
  messages: UIMessage[];
}

/** Reads a conversation. Returns `undefined` if it does not exist. */
export async function readThread(id: string): Promise<Thread | undefined> {
  try {
    return await request<Thread>(`api/threads/${encodeURIComponent(id)}`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** Returns the thread id and the suggested message in the URL of the page. */
export function readAddress(href: string): { thread: string | undefined; initial: string } {
  const { searchParams } = new URL(href);
  return {
    thread: searchParams.get("thread") || undefined,
    initial: (searchParams.get("initial") ?? "").trim().slice(0, 200),
  };
}

/** Returns the URL with another thread id, or without one, and without a suggested message. */
export function withThread(href: string, thread: string | undefined): string {
  const url = new URL(href);
  url.searchParams.delete("initial");
  if (thread === undefined) url.searchParams.delete("thread");
  else url.searchParams.set("thread", thread);
  return url.href;
}

/**
 * Returns the number of bookings in a conversation. The page reads the book again when the number
 * grows.
 */
export function countBooked(messages: readonly UIMessage[]): number {
  const booked = messages.flatMap(({ parts }) =>
    parts.filter((part) => part.type === "tool-saveExpenseToLark" && isDone(part)),
  );
  return booked.length;
}

function isDone(part: object): boolean {
  return "state" in part && part.state === "output-available";
}
