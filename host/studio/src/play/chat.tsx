// A conversation with a graph whose state has messages. Each message of the user is a run.
import { Button, Composer, JsonView, MessageList, Said, ToolCard } from "@wattle/page";
import { useEffect, useEffectEvent, useState } from "react";
import { toError } from "../api/error.ts";
import type { RunPlace } from "../api/log.ts";
import { cancelRun } from "../api/run.ts";
import type { Thread } from "../api/thread.ts";
import { Refusal } from "../part/attempt.tsx";
import { visible } from "../part/text.tsx";
import { RouteLink, runRoute } from "../router/links.tsx";
import { LiveText } from "../run/live-text.tsx";
import { Failure } from "../shell/failure.tsx";
import { Calls, GrantedFailure } from "./calls.tsx";
import type { RunContext } from "./context.tsx";
import { type Message, messagesIn } from "./conversation.ts";
import { callsOf, liveText, useTrial } from "./follow.ts";
import styles from "./play.module.css";
import { type GivenContext, type GraphOf, startRun } from "./read.ts";
import { SaveCase } from "./save-case.tsx";
import { CHAT, CONTEXT, RUN, TEXTS } from "./texts.ts";
import { StopButton, Waiting } from "./trial.tsx";
import { Words } from "./words.tsx";

interface ChatProps {
  of: GraphOf;
  /** The channel with the messages. */
  channel: string;
  context: RunContext;
}

/** A message that was sent, and its run. */
interface Turn extends GivenContext {
  place: RunPlace;
  text: string;
  input: unknown;
  /** Number of turns of the conversation before it. */
  before: number;
}

/** The conversation and the field for the next message. */
export function Chat({ of, channel, context }: ChatProps) {
  const [turn, setTurn] = useState<Turn>();
  const [messages, setMessages] = useState<readonly Message[]>([]);
  const [isOver, setOver] = useState(true);
  const [refusal, setRefusal] = useState<Error>();
  const [isSending, setSending] = useState(false);
  const send = async (text: string) => {
    setRefusal(undefined);
    const given = context.read();
    // The fields of the context say what is wrong.
    if (given === undefined) throw new Error(CONTEXT.wrong);
    setSending(true);
    const input = { [channel]: [{ role: "user", content: text }] };
    try {
      const thread = turn?.place.thread;
      const place = await startRun(of, { kind: "graph", input, thread, ...given });
      setOver(false);
      const before = turn === undefined ? 0 : turn.before + 1;
      setTurn({ place, text, input, before, ...given });
    } catch (error) {
      setRefusal(toError(error));
      throw error;
    } finally {
      setSending(false);
    }
  };
  const end = (thread: Thread) => {
    setMessages(messagesIn(thread.state, channel));
    setOver(true);
  };
  const again = () => {
    setTurn(undefined);
    setMessages([]);
    setOver(true);
  };
  const stop =
    turn === undefined ? undefined : () => void cancelRun(turn.place).catch(() => undefined);
  return (
    <section className={styles.chat} aria-label={TEXTS.asChat}>
      <MessageList label={CHAT.conversation} busy={!isOver}>
        {turn === undefined && <p className="w-note">{CHAT.empty}</p>}
        {messages.map((message, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: messages are only added.
          <Shown key={index} message={message} />
        ))}
        {turn !== undefined && !isOver && <Said by="user">{visible(turn.text)}</Said>}
        {turn !== undefined && <TurnView key={turn.place.run} turn={turn} of={of} onEnd={end} />}
      </MessageList>
      <Refusal error={refusal} />
      <Composer
        label={CHAT.label}
        placeholder={CHAT.placeholder}
        onSend={send}
        busy={!isOver}
        onStop={stop}
      />
      {turn !== undefined && (
        <div className={styles.buttons}>
          {/* The run of a message that is being sent belongs to this conversation. */}
          <Button disabled={isSending} onClick={again}>
            {CHAT.again}
          </Button>
        </div>
      )}
    </section>
  );
}

interface TurnViewProps {
  turn: Turn;
  of: GraphOf;
  onEnd: (thread: Thread) => void;
}

/** The run of the newest message. */
function TurnView({ turn, of, onEnd }: TurnViewProps) {
  const { place, input, context, before } = turn;
  const { timeline, phase, error, end, retry } = useTrial(place);
  const thread = end.data;
  const tell = useEffectEvent(onEnd);
  useEffect(() => {
    if (thread !== undefined) tell(thread);
  }, [thread]);
  const { status = "running" } = timeline.facts;
  const text = timeline.isOver ? "" : liveText(timeline);
  const problem = error ?? end.error ?? undefined;
  const again = () => (error === undefined ? void end.refetch() : retry());
  return (
    <div className={styles.turn} data-status={status}>
      <p role="status">{timeline.isOver ? "" : phase === "lost" ? RUN.lost : RUN.running}</p>
      {text !== "" && <LiveText label={RUN.streamed} text={text} />}
      {problem !== undefined && <Failure error={problem} onRetry={again} />}
      {thread?.failure != null && status === "failed" && (
        <GrantedFailure title={RUN.failure} failure={thread.failure} />
      )}
      {thread !== undefined && <Waiting thread={thread} status={status} tenant={place.tenant} />}
      <div className={styles.head}>
        <RouteLink to={runRoute(place)}>{RUN.open}</RouteLink>
        {!timeline.isOver && problem !== undefined && <StopButton place={place} />}
      </div>
      {timeline.isOver && <Calls calls={callsOf(place, timeline)} />}
      {thread !== undefined && (
        <SaveCase
          place={place}
          run={before > 0 ? undefined : { graph: of.graph, input, context, status, thread }}
        />
      )}
    </div>
  );
}

/** A message. That of a tool is a card, which opens. */
function Shown({ message: { role, text, others, asks, tool } }: { message: Message }) {
  if (role === "tool") {
    const name = visible(tool ?? "");
    return (
      <ToolCard title={CHAT.tool(name)} name={name} state="done">
        <Words label={CHAT.output} text={text} />
        {others.length > 0 && <JsonView value={others} label={CHAT.other} />}
      </ToolCard>
    );
  }
  return (
    <Said by={role}>
      {text !== "" && <p className={styles.said}>{visible(text)}</p>}
      {others.length > 0 && <JsonView value={others} label={CHAT.other} />}
      {asks.map((ask) => (
        <ToolCard key={ask.id} title={CHAT.asks(visible(ask.name))} name={ask.name} state="done">
          <JsonView value={ask.arguments} label={CHAT.arguments} />
        </ToolCard>
      ))}
    </Said>
  );
}
