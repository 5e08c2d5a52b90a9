// The chat hook of the AI SDK, synchronized with the server.
//
// The server has the conversation. The page shows the stream of a run as it arrives. If it missed
// a part of the stream (another tab, a reload, a lost connection), it reads the conversation again
// and joins the stream of the active run.
import { Chat, useChat as useSdkChat } from "@ai-sdk/react";
import { focusManager } from "@tanstack/react-query";
import {
  type ChatStatus,
  DefaultChatTransport,
  type HttpChatTransportInitOptions,
  type UIMessage,
} from "ai";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { ApiError, connectedFetch, errorOf } from "../api/index.ts";
import { lost, useConnection } from "../connection/connection.tsx";
import { useChange } from "../hook/change.ts";
import { inOrder, orNothing } from "../hook/reads.ts";
import { useTabs } from "../hook/tabs.ts";
import { isSame, userTexts, withoutLast } from "./message.ts";

/** Status of a response without content: there is no stream to join. */
const NO_CONTENT = 204;

/** Interval at which a growing message is rendered, in milliseconds. */
const THROTTLE_MS = 50;

/**
 * Delay before a page reads a conversation again whose active run had no stream. It doubles each
 * time.
 */
const FIRST_PAUSE_MS = 300;

/** Maximum of that delay. */
const LONGEST_PAUSE_MS = 5_000;

/** Interval and number of reads after a stream, because its run may end a moment later. */
const SETTLE_MS = 300;
const MOST_SETTLES = 10;

/** What a chat shows of a conversation that the server has stored. */
export interface StoredChat {
  messages: UIMessage[];
  /** A run is active. */
  isRunning: boolean;
  /** The last run failed, so the last message has no answer. False if the page says so itself. */
  hasFailed: boolean;
}

const NEW_CHAT: StoredChat = { messages: [], isRunning: false, hasFailed: false };

/** A message that the server has not accepted. */
export interface Unsent {
  id: string;
  text: string;
  error: ApiError;
  /** Number of messages of the user before it. */
  after: number;
}

/** The conversation, and how it is reached. `T` is its document on the server. */
export interface ChatOptions<T> {
  /** Id of the chat in requests of the AI SDK; a random one by default. */
  id?: string;
  /** The conversation at the first render; `undefined` for a new one. */
  loaded: T | undefined;
  chatOf: (conversation: T) => StoredChat;
  /** Reads the conversation; `undefined` if there is none yet. */
  read: () => Promise<T | undefined>;
  /**
   * Called with each conversation that was read, and never with an older one after a newer one.
   * With it, the conversation is read after each stream until its run has ended.
   */
  onRead?: (conversation: T) => void;
  /** Requests of the chat, as at the first render. */
  transport: Omit<HttpChatTransportInitOptions<UIMessage>, "fetch">;
  /** Called with each response to the chat, as at the first render. */
  onResponse?: (response: Response) => void;
  /** Channel on which tabs post that a conversation has changed. */
  channel: string;
  /** Returns what the tabs of this conversation post. Without it, each post is about it. */
  topic?: () => string | undefined;
}

/** The state of a chat, and what a user can do with it. */
export interface ChatHelpers<T> {
  messages: UIMessage[];
  /** A stream is in progress. */
  isBusy: boolean;
  /** The last run failed, as the server says. */
  hasFailed: boolean;
  /** Why the last stream ended without an answer. */
  error: Error | undefined;
  /** Kept until the next message, or until the server has the message after all. */
  unsent: Unsent | undefined;
  /** Resolves at the end of the answer. Rejects if the server has not accepted the message. */
  send: (text: string) => Promise<void>;
  /** Requests another answer to the last message. */
  regenerate: () => Promise<void>;
  /** Ends the stream, then the run by `cancel`. */
  stop: (cancel: () => Promise<unknown>) => Promise<void>;
  /** Reads the conversation; `undefined` if that failed, or if a newer one was read before. */
  read: () => Promise<T | undefined>;
  /** Notifies the other tabs that the conversation has changed. */
  tell: () => void;
}

/** Returns the chat of a conversation that the server stores. */
export function useChat<T>(options: ChatOptions<T>): ChatHelpers<T> {
  const { chatOf, onRead, channel, topic } = options;
  const [initial] = useState(() =>
    options.loaded === undefined ? NEW_CHAT : chatOf(options.loaded),
  );
  const [hasFailed, setFailed] = useState(initial.hasFailed);
  const [unsent, setUnsent] = useState<Unsent>();
  // Number of consecutive requests that found no stream.
  const [misses, setMisses] = useState(0);
  const stopping = useRef(false);
  const [chat] = useState(() =>
    chatWith(options, initial.messages, (hasStream) =>
      setMisses((count) => (hasStream ? 0 : count + 1)),
    ),
  );
  useEffect(() => () => void chat.stop(), [chat]);
  const { messages, status, error } = useSdkChat({
    chat,
    resume: initial.isRunning,
    throttle: THROTTLE_MS,
  });
  const isBusy = isActive(status);

  const [readInOrder] = useState(() =>
    inOrder((read: () => Promise<T | undefined>) => orNothing(read())),
  );
  const read = async () => {
    const conversation = await readInOrder(options.read);
    if (conversation !== undefined) onRead?.(conversation);
    return conversation;
  };
  /** Shows the messages that the server has stored, if the page has others. */
  const showMissed = (stored: StoredChat) => {
    if (!isSame(chat.messages, stored.messages)) chat.messages = stored.messages;
  };
  /** Reads the conversation. Shows it and joins its run, unless this page has a stream. */
  const refresh = async () => {
    const conversation = await read();
    if (conversation === undefined || isActive(chat.status) || stopping.current) return;
    const stored = chatOf(conversation);
    setFailed(stored.hasFailed);
    setUnsent((unsent) => (unsent && isIn(stored.messages, unsent) ? undefined : unsent));
    if (!stored.hasFailed) chat.clearError();
    if (!stored.isRunning) return showMissed(stored);
    chat.messages = stored.messages;
    await chat.resumeStream();
  };
  /**
   * Reads the conversation until the run of a stream that has ended has ended as well. Then shows
   * what the page missed if the stream was cut.
   */
  const settle = async () => {
    for (let count = 0; count < MOST_SETTLES; count += 1) {
      const conversation = await read();
      if (isActive(chat.status)) return;
      const stored = conversation === undefined ? undefined : chatOf(conversation);
      if (stored !== undefined && !stored.isRunning) {
        // A `refresh` whose read began earlier than this one has dropped what it read.
        if (!stopping.current) showMissed(stored);
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    }
  };

  const rejoin = useEffectEvent(() => void refresh());
  useEffect(() => {
    if (misses === 0) return;
    const timer = setTimeout(rejoin, pauseAfter(misses));
    return () => clearTimeout(timer);
  }, [misses]);

  const post = useTabs(channel, (news) => {
    if (topic === undefined || news === topic()) void refresh();
  });
  useEffect(() => focusManager.subscribe((isFocused) => isFocused && rejoin()), []);
  const tell = () => post(topic?.());
  useConnection(() => void refresh());
  useChange(isBusy, () => {
    tell();
    if (onRead !== undefined && !isBusy && !stopping.current) void settle().then(tell);
  });

  const send = async (text: string) => {
    setUnsent(undefined);
    setFailed(false);
    await chat.sendMessage({ text });
    const { error } = chat;
    // An error of a stream that has begun is about the answer.
    if (!(error instanceof ApiError)) return;
    const id = chat.messages.at(-1)?.id ?? "";
    chat.messages = withoutLast(chat.messages, text);
    chat.clearError();
    setUnsent({ id, text, error, after: userTexts(chat.messages).length });
    throw error;
  };
  const regenerate = async () => {
    setUnsent(undefined);
    setFailed(false);
    await chat.regenerate();
    await refresh();
  };
  const stop = async (cancel: () => Promise<unknown>) => {
    stopping.current = true;
    try {
      await chat.stop();
      await cancel();
    } finally {
      stopping.current = false;
      await refresh();
      tell();
    }
  };
  const shown = { messages, isBusy, hasFailed, error, unsent };
  return { ...shown, send, regenerate, stop, read, tell };
}

function isActive(status: ChatStatus): boolean {
  return status === "submitted" || status === "streaming";
}

/** Returns the delay after some consecutive requests that found no stream. */
function pauseAfter(misses: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** (misses - 1), LONGEST_PAUSE_MS);
}

/**
 * Returns true if a conversation has a message that seemed to be refused. A server may store another
 * id or another text than it was sent.
 */
function isIn(messages: readonly UIMessage[], { id, text, after }: Unsent): boolean {
  const hasId = messages.some((message) => message.id === id);
  return hasId || userTexts(messages).slice(after).includes(text);
}

function chatWith<T>(
  { id, transport, onResponse }: ChatOptions<T>,
  messages: UIMessage[],
  onStream: (hasStream: boolean) => void,
): Chat<UIMessage> {
  const fetch = async (input: RequestInfo | URL, init?: RequestInit) => {
    const response = await connectedFetch(input, init);
    if (!response.ok) throw await errorOf(response);
    onResponse?.(response);
    onStream(response.status !== NO_CONTENT);
    return response;
  };
  return new Chat<UIMessage>({
    ...(id === undefined ? {} : { id }),
    messages,
    transport: new DefaultChatTransport<UIMessage>({ ...transport, fetch }),
    onError: (error) => {
      // A read fails in this way if the connection of the stream is cut.
      if (error instanceof TypeError) lost();
    },
  });
}
