// The app's endpoints. Their responses are `{code, message, data}`.
import { endpoints } from "@wattle/page/endpoints";
import { streams } from "@wattle/page/sse";
import type { Message, Messages, paths, Row, StreamEvent } from "./types.ts";

const call = endpoints<paths>();
const stream = streams<paths>();

const SESSION = "/api/chat/sessions/{id}";

/** Number of sessions by which the list grows. */
const SESSION_PAGE = 50;

/** Messages of one request, the maximum of the endpoint. */
const MESSAGE_PAGE = 200;

/** Returns a page of the sessions, the newest first. */
export async function listSessions(offset: number) {
  const query = { offset, limit: SESSION_PAGE };
  return (await call("get", "/api/chat/sessions", { query })).data;
}

export const deleteSession = (id: string) => call("delete", SESSION, { path: { id } });

export const deleteMessages = (id: string) =>
  call("delete", `${SESSION}/messages`, { path: { id } });

/** Returns all messages of a session, in as many requests as necessary. */
export async function listMessages(id: string): Promise<Messages> {
  const messages: Message[] = [];
  for (;;) {
    const query = { offset: messages.length, limit: MESSAGE_PAGE };
    const { data: page } = await call("get", `${SESSION}/messages`, { path: { id }, query });
    messages.push(...page.messages);
    if (page.messages.length === 0 || messages.length >= page.total) {
      return { messages, total: page.total, pending: page.pending };
    }
  }
}

/** Returns all rows of an answer, of which a list of messages has the first ones. */
export async function allRows(id: string, message: number): Promise<Row[]> {
  const path = { id, message: String(message) };
  return (await call("get", `${SESSION}/messages/{message}/rows`, { path })).data.rows;
}

export const suggestions = async () => (await call("get", "/api/chat/suggestions")).data;

interface Question {
  session: string;
  message: string;
  /** Called when the question is accepted. */
  onAccepted: () => void;
  onEvent: (event: StreamEvent["data"]) => void;
}

/** Asks a question and reports every step. Resolves at the end of the stream. */
export function ask({ session, message, onAccepted, onEvent }: Question): Promise<void> {
  return stream("/api/chat/stream", {
    body: { session_id: session, message },
    onOpen: onAccepted,
    ends: ["workflow_end", "workflow_error"],
    onEvent: ({ data }) => onEvent(data),
  });
}

/**
 * Creates the id of a session. The page chooses it, so a reload in the middle of a question has it.
 */
export function newSessionId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
