// A conversation: its documents, its address, and what is said in it.
import { ApiError, request } from "@wattle/page";
import type { UIMessage } from "ai";

/** Tabs post the conversation that has changed. A booking in one shows in the book beside another. */
export const CHANNEL = "wattle-expense";

/** A conversation as the app shows it. */
export interface Thread {
  threadId: string;
  /** `running` while an answer is under way. */
  status: string;
  messages: UIMessage[];
}

/** Reads a conversation; `undefined` if there is none of this name any more. */
export async function readThread(id: string): Promise<Thread | undefined> {
  try {
    return await request<Thread>(`api/threads/${encodeURIComponent(id)}`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

/** What the address of the page says: the conversation, and a message that somebody suggests. */
export function readAddress(href: string): { thread: string | undefined; initial: string } {
  const { searchParams } = new URL(href);
  return {
    thread: searchParams.get("thread") || undefined,
    initial: (searchParams.get("initial") ?? "").trim().slice(0, 200),
  };
}

/** The same address with another conversation, or none. */
export function withThread(href: string, thread: string | undefined): string {
  const url = new URL(href);
  url.searchParams.delete("initial");
  if (thread === undefined) url.searchParams.delete("thread");
  else url.searchParams.set("thread", thread);
  return url.href;
}

/** How many bookings were made in a conversation: the page reads them again when it grows. */
export function countBooked(messages: readonly UIMessage[]): number {
  const booked = messages.flatMap(({ parts }) =>
    parts.filter((part) => part.type === "tool-saveExpenseToLark" && isDone(part)),
  );
  return booked.length;
}

function isDone(part: object): boolean {
  return "state" in part && part.state === "output-available";
}
