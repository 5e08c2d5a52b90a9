// The chat of a thread, with the texts for its failures.
import { ApiError, address } from "@wattle/page";
import { type StoredChat, textOf, useChat } from "@wattle/page/ai";
import { useRef } from "react";
import type { ChatRequest } from "./schema.d.ts";
import { CHANNEL, putThreadInUrl, readThread, type Thread } from "./thread.ts";

/** Header with the thread id. */
const THREAD_HEADER = "x-thread-id";

const UNSURE = "连接中断，这条消息可能已经送达：请先核对账本，再决定是否重发。";
const UNANSWERED = "AI 服务暂时不可用，请稍后再试。";

/** Returns the conversation of a loaded thread, or a new one, which puts its id into the URL. */
export function useConversation(loaded: Thread | undefined) {
  const thread = useRef(loaded?.threadId);
  const { messages, isBusy, hasFailed, error, unsent, send, regenerate } = useChat<Thread>({
    loaded,
    chatOf,
    read: async () => (await readThread(thread.current)) ?? undefined,
    transport: {
      prepareSendMessagesRequest: ({ messages, trigger }) => {
        const last = messages.at(-1);
        const message = last === undefined ? "" : textOf(last);
        const said: ChatRequest = trigger === "regenerate-message" ? { retry: true } : { message };
        const { current: threadId } = thread;
        const body: ChatRequest = threadId === undefined ? said : { ...said, threadId };
        return { api: address("api/chat/stream?format=ai-sdk"), body };
      },
      prepareReconnectToStreamRequest: () => ({
        api: address(`api/threads/${encodeURIComponent(thread.current ?? "")}/stream`),
      }),
    },
    onResponse: ({ headers }) => {
      const id = headers.get(THREAD_HEADER);
      if (id === null || id === thread.current) return;
      thread.current = id;
      putThreadInUrl(id);
    },
    channel: CHANNEL,
    topic: () => thread.current,
  });
  const refusal = unsent && (unsent.error.kind === "network" ? UNSURE : unsent.error.message);
  const failure = error ? messageOf(error) : hasFailed ? UNANSWERED : undefined;
  return {
    messages,
    isBusy,
    /** Why the last message has no reply. */
    error: isBusy ? undefined : (refusal ?? failure),
    /** True if a reply to the last message can be requested again. */
    canRetry: !isBusy && failure !== undefined,
    /** Rejects if the server did not accept the message. */
    send,
    retry: () => void regenerate(),
  };
}

function chatOf({ messages, status }: Thread): StoredChat {
  return { messages, isRunning: status === "running", hasFailed: status === "error" };
}

/**
 * Returns the message of an error. Failures of a run have messages of services, which are not for
 * users; failures of the app are for users.
 */
function messageOf(error: Error): string {
  return error instanceof ApiError ? error.message : UNANSWERED;
}
