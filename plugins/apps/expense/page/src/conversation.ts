// Chat hook that is synchronized with the server.
//
// The server stores the conversation. The page shows the stream of a reply as it arrives. If it has
// missed a part of the stream (another tab, a reload, a lost connection), it reads the conversation
// again and joins the stream of the active run.
import { useChat } from "@ai-sdk/react";
import { ApiError, address, inOrder, orNothing, useConnection, useTabs } from "@wattle/page";
import { textOf, useJoining, withoutLast } from "@wattle/page/ai";
import { DefaultChatTransport, type UIMessage } from "ai";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { CHANNEL, readThread, type Thread } from "./thread.ts";

/** Header with the thread id. */
const THREAD_HEADER = "x-thread-id";

/** Minimum milliseconds between two renderings of a streamed reply. */
const THROTTLE_MS = 50;

const UNSURE = "连接中断，这条消息可能已经送达：请先核对账本，再决定是否重发。";
const UNANSWERED = "AI 服务暂时不可用，请稍后再试。";

export interface Conversation {
  messages: UIMessage[];
  isBusy: boolean;
  /** Why the last message has no reply. */
  error: string | undefined;
  /** True if a reply to the last message can be requested again. */
  canRetry: boolean;
  /** Rejects if the server did not accept the message. */
  send: (text: string) => Promise<void>;
  retry: () => void;
}

/** Returns the conversation of a loaded thread, or a new one. */
export function useConversation(
  loaded: Thread | undefined,
  onThread: (id: string) => void,
): Conversation {
  const thread = useRef(loaded?.threadId);
  const refused = useRef<Error>(undefined);
  const [problem, setProblem] = useState<string>();
  const [hasFailed, setFailed] = useState(loaded?.status === "error");
  const joining = useJoining();
  const transport = useMemo(
    () => makeTransport(thread, refused, onThread, joining.fetch),
    [onThread, joining],
  );
  const chat = useChat({
    messages: loaded?.messages ?? [],
    resume: loaded?.status === "running",
    transport,
    throttle: THROTTLE_MS,
  });
  const isBusy = chat.status === "submitted" || chat.status === "streaming";
  const latest = useRef({ chat, isBusy });
  latest.current = { chat, isBusy };

  const read = useMemo(() => inOrder((id: string) => orNothing(readThread(id))), []);
  const refresh = useCallback(async () => {
    if (thread.current === undefined || latest.current.isBusy) return;
    const now = await read(thread.current);
    if (now === undefined || latest.current.isBusy) return;
    const { chat } = latest.current;
    setFailed(now.status === "error");
    if (now.status !== "error") chat.clearError();
    if (!isSame(chat.messages, now.messages) || now.status === "running") {
      setProblem(undefined);
      chat.setMessages(now.messages);
    }
    if (now.status === "running") await chat.resumeStream();
  }, [read]);
  joining.refresh.current = refresh;
  const tell = useTabs(CHANNEL, (changed) => {
    if (changed === undefined || changed === thread.current) void refresh();
  });
  useConnection(() => void refresh());
  const before = useRef(isBusy);
  useEffect(() => {
    if (before.current !== isBusy) tell(thread.current);
    before.current = isBusy;
  }, [isBusy, tell]);

  const send = useCallback(async (text: string) => {
    refused.current = undefined;
    setProblem(undefined);
    setFailed(false);
    const { chat } = latest.current;
    await chat.sendMessage({ text });
    const error = refused.current as Error | undefined;
    if (error === undefined) return;
    // The server has not confirmed the message, so the user keeps it.
    latest.current.chat.setMessages((messages) => withoutLast(messages, text));
    latest.current.chat.clearError();
    const isCut = error instanceof ApiError && error.kind === "network";
    setProblem(isCut ? UNSURE : error.message);
    throw error;
  }, []);
  const retry = useCallback(() => {
    setProblem(undefined);
    setFailed(false);
    void latest.current.chat.regenerate().then(refresh);
  }, [refresh]);

  const canRetry =
    !isBusy && thread.current !== undefined && (hasFailed || chat.error !== undefined);
  const failure = chat.error ? messageOf(chat.error) : hasFailed ? UNANSWERED : undefined;
  const error = isBusy ? undefined : (problem ?? failure);
  return { messages: chat.messages, isBusy, error, canRetry, send, retry };
}

/**
 * Returns the message of an error. Failures of a run have messages of services, which are not for
 * users; failures of the app are for users.
 */
function messageOf(error: Error): string {
  return error instanceof ApiError ? error.message : UNANSWERED;
}

function makeTransport(
  thread: { current: string | undefined },
  refused: { current: Error | undefined },
  onThread: (id: string) => void,
  fetch: typeof globalThis.fetch,
) {
  const named = async (input: RequestInfo | URL, init?: RequestInit) => {
    try {
      const response = await fetch(input, init);
      const id = response.headers.get(THREAD_HEADER);
      if (id !== null && id !== thread.current) {
        thread.current = id;
        onThread(id);
      }
      return response;
    } catch (error) {
      refused.current = error instanceof Error ? error : new Error(String(error));
      throw error;
    }
  };
  return new DefaultChatTransport({
    fetch: named,
    prepareSendMessagesRequest: ({ messages, trigger }) => {
      const last = messages.at(-1);
      const message = last === undefined ? "" : textOf(last);
      const said = trigger === "regenerate-message" ? { retry: true } : { message };
      return {
        api: address("api/chat/stream?format=ai-sdk"),
        body: { threadId: thread.current, ...said },
      };
    },
    prepareReconnectToStreamRequest: () => ({
      api: address(`api/threads/${encodeURIComponent(thread.current ?? "")}/stream`),
    }),
  });
}

/**
 * Returns true if both have the same content. Ids are ignored, because streamed messages have other
 * ids than stored ones.
 */
export function isSame(one: readonly UIMessage[], other: readonly UIMessage[]): boolean {
  const gist = (messages: readonly UIMessage[]) =>
    JSON.stringify(messages.map((message) => [message.role, textOf(message), calls(message)]));
  return gist(one) === gist(other);
}

function calls(message: UIMessage): unknown[] {
  return message.parts.map((part) =>
    "toolCallId" in part ? [part.toolCallId, "state" in part ? part.state : undefined] : [],
  );
}
