// The conversation of a session: its chat, and the results that the server has stored.
import { ApiError, address, useChange } from "@wattle/page";
import { type StoredChat, useChat } from "@wattle/page/ai";
import { useEffect, useEffectEvent, useMemo, useState } from "react";
import { api, type ChatRequest, type StateView, type WholeSession } from "./api.ts";
import { isFirstVisit } from "./initial.ts";
import { doneTools } from "./parts.ts";

const CONTINUE = "请从上次停下的地方继续。";

export type Conversation = ReturnType<typeof useConversation>;

function messageOf(error: Error): string {
  if (error instanceof ApiError) {
    return error.status === 409 ? "另一个页面正在生成，请等待结束或先停止。" : error.message;
  }
  return error.message || "回答中断。";
}

/** Returns the conversation of a session that was read. */
export function useConversation(loaded: WholeSession, initial: string | undefined) {
  const { id } = loaded;
  const [session, setSession] = useState(loaded);
  // Ids of the tool calls that were cancelled.
  const cancelled = useMemo(() => cancelledCalls(session), [session]);
  // Number of tool outputs that the stored state certainly has.
  const [settled, setSettled] = useState(() => doneTools(loaded.messages).length);
  // The AI SDK adds the other fields of the request.
  const body: Pick<ChatRequest, "sessionId"> = { sessionId: id };
  const chat = useChat<WholeSession>({
    id,
    loaded,
    chatOf,
    read: () => api.show(id),
    onRead: setSession,
    transport: { api: address("api/chat"), body },
    channel: `wattle-travel-${id}`,
  });
  const { messages, isBusy, unsent, tell } = chat;

  const made = doneTools(messages).length;
  useChange(made, async () => {
    if ((await chat.read()) !== undefined) setSettled(made);
  });

  // A refused message is in `unsent`.
  const send = (text: string) => void chat.send(text).catch(() => undefined);
  const sendInitial = useEffectEvent(() => {
    if (initial !== undefined && isFirstVisit(id, initial) && loaded.messages.length === 0) {
      send(initial);
    }
  });
  useEffect(() => sendInitial(), []);

  const onSaved = (state: StateView) => {
    setSession((session) => ({ ...session, state }));
    tell();
  };
  const cancel = async () => {
    const stopped = await api.cancel(id);
    setSession((session) => ({ ...session, ...stopped }));
  };
  const failure = isBusy ? undefined : (unsent?.error ?? chat.error);
  return {
    session,
    settled,
    messages,
    cancelled,
    isBusy,
    // The last message has no answer or only a part of one.
    error: failure && messageOf(failure),
    // The text of a message that the server refused.
    unsent: unsent?.text,
    send,
    // Sends the refused message again, or asks to continue.
    retry: () => send(unsent?.text ?? CONTINUE),
    stop: () => chat.stop(cancel),
    onSaved,
  };
}

/** The session itself says why a run has failed. */
function chatOf({ messages, status }: WholeSession): StoredChat {
  return { messages, isRunning: status === "RUNNING", hasFailed: false };
}

function cancelledCalls({ steps }: WholeSession): ReadonlySet<string> {
  const cancelled = steps.filter(({ status }) => status === "CANCELLED");
  return new Set(cancelled.flatMap(({ toolCallId }) => toolCallId ?? []));
}
