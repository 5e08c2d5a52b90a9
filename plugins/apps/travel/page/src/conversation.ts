// The conversation of a session: the chat hook, and its synchronization with the server.
//
// The server has the session. The page shows the stream of a run. If it missed a part of the stream
// (another tab, a reload, a lost connection), it reads the session again and joins the active run.
import { useChat } from "@ai-sdk/react";
import { ApiError, address, inOrder, orNothing, useConnection, useTabs } from "@wattle/page";
import { useJoining, withoutLast } from "@wattle/page/ai";
import { DefaultChatTransport, type UIMessage } from "ai";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { api, type Session, type State, type WholeSession } from "./api.ts";
import { isFirstVisit } from "./initial.ts";
import { doneTools } from "./parts.ts";
import { toGuidePrompt } from "./prompt.ts";

/** Interval at which a growing message is rendered, in milliseconds. */
const THROTTLE_MS = 50;

/** Interval and number of reads after a stream, because its run may end a moment later. */
const SETTLE_MS = 300;
const MOST_SETTLES = 10;

const CONTINUE = "请从上次停下的地方继续。";

export interface Conversation {
  session: Session;
  state: State;
  /** Number of tool outputs that the state certainly has. */
  settled: number;
  messages: UIMessage[];
  /** Ids of the tool calls that were cancelled. */
  cancelled: ReadonlySet<string>;
  /** A run is active, here or elsewhere. */
  isBusy: boolean;
  /** Error of the last message, which has no answer or only a part of one. */
  error: string | undefined;
  /** A message that the server refused. */
  unsent: string | undefined;
  send: (text: string) => void;
  /** Sends the refused message again, or asks to continue. */
  retry: () => void;
  stop: () => Promise<void>;
  /** Called after the editor has saved. */
  onSaved: (state: State) => void;
}

function messageOf(error: Error): string {
  if (error instanceof ApiError) {
    return error.status === 409 ? "另一个页面正在生成，请等待结束或先停止。" : error.message;
  }
  return error.message || "回答中断。";
}

/** Returns the conversation of a session that was read. */
export function useConversation(loaded: WholeSession, initial: string | undefined): Conversation {
  const { id } = loaded;
  const [session, setSession] = useState<Session>(loaded);
  const [state, setState] = useState<State>(loaded.state);
  const [cancelled, setCancelled] = useState(() => cancelledCalls(loaded));
  const [settled, setSettled] = useState(() => doneTools(loaded.messages));
  const [unsent, setUnsent] = useState<string>();
  const isStopping = useRef(false);
  const failure = useRef<Error>(undefined);
  const joining = useJoining();
  const transport = useMemo(
    () =>
      new DefaultChatTransport({
        api: address("api/chat"),
        fetch: joining.fetch,
        body: { sessionId: id },
      }),
    [id, joining],
  );
  const chat = useChat({
    id,
    messages: loaded.messages,
    resume: loaded.status === "RUNNING",
    transport,
    throttle: THROTTLE_MS,
    onError: (error) => {
      failure.current = error;
    },
  });
  const isStreaming = chat.status === "submitted" || chat.status === "streaming";
  const latest = useRef({ chat, isStreaming });
  latest.current = { chat, isStreaming };

  const readInOrder = useMemo(() => inOrder(() => orNothing(api.show(id))), [id]);
  /** Reads the session and shows it. */
  const read = useCallback(async () => {
    const whole = await readInOrder();
    if (whole === undefined) return undefined;
    setSession(whole);
    setState(whole.state);
    setCancelled(cancelledCalls(whole));
    return whole;
  }, [readInOrder]);
  /** Reads the session. Shows its messages and joins its run, unless this page has a stream. */
  const refresh = useCallback(async () => {
    const whole = await read();
    if (whole === undefined) return;
    const { chat, isStreaming } = latest.current;
    if (isStreaming || isStopping.current) return;
    if (!(failure.current instanceof ApiError)) chat.clearError();
    chat.setMessages(whole.messages);
    if (whole.status === "RUNNING") await chat.resumeStream();
  }, [read]);
  joining.refresh.current = refresh;
  /** Reads the session after a stream of this page, which has shown the messages. */
  const settle = useCallback(async () => {
    for (let count = 0; count < MOST_SETTLES; count += 1) {
      const whole = await read();
      const hasEnded = whole !== undefined && whole.status !== "RUNNING";
      if (hasEnded || latest.current.isStreaming) return;
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    }
  }, [read]);

  const tell = useTabs(`wattle-travel-${id}`, () => void refresh());
  useConnection(() => void refresh());
  useStreamChanges(isStreaming, () => {
    tell();
    if (!isStreaming && !isStopping.current) void settle().then(() => tell());
  });
  const made = doneTools(chat.messages);
  const seen = useRef(made);
  useEffect(() => {
    if (seen.current === made) return;
    seen.current = made;
    void read().then((whole) => {
      if (whole !== undefined) setSettled(made);
    });
  }, [made, read]);

  const send = useCallback((typed: string) => {
    setUnsent(undefined);
    failure.current = undefined;
    const { chat } = latest.current;
    // The first message may be only the URL of a video.
    const text = chat.messages.length === 0 ? toGuidePrompt(typed) : typed;
    void chat.sendMessage({ text }).then(() => {
      // The request was refused before there was a stream, so the server does not have the message.
      if (!(failure.current instanceof ApiError)) return;
      setUnsent(text);
      chat.setMessages((messages) => withoutLast(messages, text));
    });
  }, []);
  useEffect(() => {
    if (initial !== undefined && isFirstVisit(id, initial) && loaded.messages.length === 0) {
      send(initial);
    }
  }, [id, initial, loaded, send]);

  const stop = useCallback(async () => {
    isStopping.current = true;
    try {
      await latest.current.chat.stop();
      setSession(await api.cancel(id));
    } finally {
      isStopping.current = false;
      await refresh();
      tell();
    }
  }, [id, refresh, tell]);
  const retry = useCallback(() => send(unsent ?? CONTINUE), [send, unsent]);
  const onSaved = useCallback(
    (next: State) => {
      setState(next);
      tell();
    },
    [tell],
  );
  const error = chat.error && messageOf(chat.error);
  const { messages } = chat;
  const shown = {
    session,
    state,
    settled,
    messages,
    cancelled,
    isBusy: isStreaming,
    error,
    unsent,
  };
  return { ...shown, send, retry, stop, onSaved };
}

function cancelledCalls({ steps }: WholeSession): ReadonlySet<string> {
  const cancelled = steps.filter(({ status }) => status === "CANCELLED");
  return new Set(cancelled.map(({ toolCallId }) => toolCallId));
}

/** Calls `onChange` when a stream begins or ends, after the page has rendered it. */
function useStreamChanges(isStreaming: boolean, onChange: () => void): void {
  const before = useRef(isStreaming);
  const latest = useRef(onChange);
  latest.current = onChange;
  useEffect(() => {
    if (before.current === isStreaming) return;
    before.current = isStreaming;
    latest.current();
  }, [isStreaming]);
}
