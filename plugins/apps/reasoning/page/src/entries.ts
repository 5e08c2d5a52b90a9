// Entries of the conversation, derived from the session on the server.
import type { Clarification, Result, Session, Turn } from "./api.ts";

export type Entry =
  | { kind: "said"; key: string; text: string }
  | { kind: "asked"; key: string; question: string }
  | { kind: "answer"; key: string; result: Result }
  | { kind: "failed"; key: string; message: string; code: string; mayRetry: boolean }
  | { kind: "unrun"; key: string }
  | { kind: "notice"; key: string; text: string };

/** A failure that is not in a session. */
export interface Failure {
  message: string;
  code: string;
}

/** What a conversation consists of. */
interface Parts {
  /** Entries of earlier sessions. */
  before: readonly Entry[];
  session: Session | null;
  /** Message of the user that is not yet in the session. */
  pending: string | undefined;
  failure: Failure | null;
  isRunning: boolean;
}

const TRUNCATED = "会话过长，较早的消息没有显示。";
const STOPPED = "已停止。下一条消息将开始新的会话。";

/** Codes in responses by failure code of a turn; 9999 for any other failure. */
const CODES: Record<string, string> = { llm: "9000", mcp: "9001" };
const OTHER_CODE = "9999";

/** Returns the entries of a conversation in order. */
export function conversationEntries(parts: Parts): Entry[] {
  const { before, session, pending, failure, isRunning } = parts;
  const entries = [...before, ...(session ? entriesOf(session) : [])];
  if (pending !== undefined) entries.push({ kind: "said", key: "pending", text: pending });
  if (failure) entries.push({ kind: "failed", key: "failure", ...failure, mayRetry: false });
  // A turn that runs is not shown as one that failed or never ran.
  return isRunning ? entries.filter((entry) => !mayRun(entry)) : entries;
}

function mayRun(entry: Entry): boolean {
  return entry.kind === "unrun" || (entry.kind === "failed" && entry.mayRetry);
}

/** Returns the entries of a closed session as they stay visible above those of the next one. */
export function closedEntries(entries: readonly Entry[]): Entry[] {
  const lasting = entries.filter(({ kind }) => kind !== "unrun");
  return lasting.map((entry) => ({ ...entry, key: `before-${entry.key}` }));
}

/** Returns the entries of a session in order. */
export function entriesOf(session: Session): Entry[] {
  const entries = session.turns.flatMap((turn, index) => {
    const asked = session.clarifications.filter(({ turn_id }) => turn_id === turn.turn_id);
    const isLast = index === session.turns.length - 1;
    const said: Entry = { kind: "said", key: turn.turn_id, text: question(turn, asked) };
    return [said, ...asked.flatMap(dialog), ...outcome(turn, session, isLast)];
  });
  const cut: Entry = { kind: "notice", key: "truncated", text: TRUNCATED };
  return session.truncated ? [cut, ...entries] : entries;
}

/** Returns the number of user messages in a session. */
export function saidIn(session: Session | null): number {
  if (session === null) return 0;
  const answers = session.clarifications.filter(({ status }) => status === "answered");
  // The oldest turns can be missing.
  const turns = Math.max(session.turns.length, session.turns.at(-1)?.turn_no ?? 0);
  return turns + answers.length;
}

function dialog(asked: Clarification): Entry[] {
  const { clarification_id: key, question } = asked;
  const entries: Entry[] = [{ kind: "asked", key, question }];
  const text = answerOf(asked);
  if (text !== undefined) entries.push({ kind: "said", key: `${key}-answer`, text });
  return entries;
}

/** Returns the text of an answer. Other clients use other names for its field. */
function answerOf({ status, answer }: Clarification): string | undefined {
  if (status !== "answered" || !answer) return undefined;
  const fields = [answer.text, answer.content, answer.value, answer.answer, answer.message];
  return fields.find((field) => typeof field === "string")?.trim();
}

/** Returns the input of a turn without the answers that were appended to it. */
function question(turn: Turn, asked: Clarification[]): string {
  let text = turn.user_input;
  for (const answer of asked.map(answerOf).reverse()) {
    const line = `\n[clarification] ${answer}`;
    if (answer !== undefined && text.endsWith(line)) text = text.slice(0, -line.length);
  }
  return text;
}

function outcome(turn: Turn, session: Session, isLast: boolean): Entry[] {
  const key = `${turn.turn_id}-end`;
  if (turn.result) return [{ kind: "answer", key, result: turn.result }];
  if (turn.status === "failed") {
    const message = turn.error?.message ?? "运行失败。";
    const code = CODES[turn.error?.code ?? ""] ?? OTHER_CODE;
    const mayRetry = isLast && session.status !== "cancelled";
    return [{ kind: "failed", key, message, code, mayRetry }];
  }
  if (!isLast) return [];
  if (session.status === "cancelled") return [{ kind: "notice", key, text: STOPPED }];
  return session.status === "created" ? [{ kind: "unrun", key }] : [];
}
