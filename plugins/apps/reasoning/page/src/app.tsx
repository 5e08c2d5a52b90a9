// The page: the conversation and the audit trail.
import { Button, Composer, Shell, takeSuggestion, useConnection } from "@wattle/page";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { Audit } from "./audit.tsx";
import { Conversation, entries, isRunning, type State } from "./conversation.ts";
import { Log } from "./log.tsx";
import { sessionIn, withSession } from "./place.ts";
import "./page.css";

/** Milliseconds between two reads of the trail, during a run and otherwise. */
const LOOK_MS = { running: 1_000, idle: 3_000 };

/** Windows that are wide enough for conversation and panel. */
const WIDE = "(min-width: 1100px)";

const PLACEHOLDERS = { ask: "例如：统计各区域的客户数量", answer: "请回答上面的问题" };

export function App() {
  const conversation = useMemo(() => new Conversation(sessionIn(location.hash)), []);
  const state = useSyncExternalStore(conversation.watch, conversation.state);
  const { id, session } = state;
  const running = isRunning(state);
  const [suggested] = useState(takeSuggestion);
  const awaitingClarification = session?.clarification ?? null;
  const audit = useAudit();
  usePlace(conversation, id);
  useLooks(conversation, id, running);
  const toggle = (
    <button
      ref={audit.toggle}
      id="toggle"
      type="button"
      className="w-button"
      aria-expanded={audit.isOpen}
      aria-controls="audit"
      onClick={() => audit.show(!audit.isOpen)}
    >
      审计
    </button>
  );
  const actions = (
    <>
      <Button onClick={() => thenWrite(() => conversation.startOver())} disabled={running}>
        新会话
      </Button>
      {toggle}
    </>
  );
  return (
    <Shell title="业务数据问答" layout="fixed" actions={actions}>
      <p id="session" className="session">
        {id ? `会话 ${id}` : "尚未开始会话"}
      </p>
      <div className="columns">
        <div className="chat">
          <Log
            entries={entries(state)}
            isRunning={running}
            onRetry={() => thenWrite(() => void conversation.retry())}
          />
          <div className="composer">
            {awaitingClarification && (
              <p id="awaiting" className="awaiting">
                等待补充信息：下一条消息将作为对上面问题的回答。
              </p>
            )}
            <Composer
              label={awaitingClarification ? "补充信息" : "问题"}
              placeholder={PLACEHOLDERS[awaitingClarification ? "answer" : "ask"]}
              initial={suggested}
              onSend={(text) => conversation.send(text)}
              busy={running}
              onStop={stopOf(conversation, state)}
              autoFocus
            />
          </div>
        </div>
        {audit.isOpen && (
          <Audit
            events={state.events}
            problem={state.problem}
            hasSession={id !== null}
            onRefresh={() => void conversation.refresh()}
            onClose={() => audit.show(false)}
            closeButton={audit.close}
          />
        )}
      </div>
    </Shell>
  );
}

/** Returns the function that stops the run, or `undefined` without a session. */
function stopOf(conversation: Conversation, { id }: State): (() => void) | undefined {
  return id === null ? undefined : () => thenWrite(() => void conversation.stop());
}

/** Moves the focus to the input field and calls `act`: the pressed button disappears. */
function thenWrite(act: () => void): void {
  document.querySelector("textarea")?.focus();
  act();
}

/** Keeps the session in the URL of the page, so that a reload continues with it. */
function usePlace(conversation: Conversation, id: string | null): void {
  useEffect(() => {
    const follow = () => void conversation.open(sessionIn(location.hash));
    follow();
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, [conversation]);
  useEffect(() => {
    if (sessionIn(location.hash) !== id) history.pushState(null, "", withSession(id));
  }, [id]);
}

/** Reads new rows in an interval, which is shorter during a run. Pauses without a connection. */
function useLooks(conversation: Conversation, id: string | null, running: boolean): void {
  const connection = useConnection(() => void conversation.refresh());
  useEffect(() => {
    if (id === null || connection === "lost") return;
    const look = () => {
      if (!document.hidden) void conversation.refresh();
    };
    const looks = setInterval(look, LOOK_MS[running ? "running" : "idle"]);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(looks);
      document.removeEventListener("visibilitychange", look);
    };
  }, [conversation, connection, id, running]);
}

/** Opens and closes the panel. If the user does so, the focus moves with it. */
function useAudit() {
  const [isOpen, setOpen] = useState(() => matchMedia(WIDE).matches);
  const toggle = useRef<HTMLButtonElement>(null);
  const close = useRef<HTMLButtonElement>(null);
  const isByUser = useRef(false);
  useEffect(() => {
    if (isByUser.current) (isOpen ? close : toggle).current?.focus();
  }, [isOpen]);
  const show = (next: boolean) => {
    isByUser.current = true;
    setOpen(next);
  };
  return { isOpen, show, toggle, close };
}
