// The page: the conversation and the audit trail.
import { Button, Composer, Shell, takeSuggestion } from "@wattle/page";
import { useRef, useState } from "react";
import { flushSync } from "react-dom";
import { Audit } from "./audit.tsx";
import { useConversation } from "./conversation.ts";
import { Log } from "./log.tsx";
import styles from "./page.module.css";

/** Windows that are wide enough for conversation and panel. */
const WIDE = "(min-width: 1100px)";

const PLACEHOLDERS = { ask: "例如：统计各区域的客户数量", answer: "请回答上面的问题" };

export function App() {
  const conversation = useConversation();
  const { id, session, entries, events, isRunning, problem } = conversation;
  const [suggested] = useState(takeSuggestion);
  const awaitingClarification = session?.clarification ?? null;
  const audit = useAudit();
  const actions = (
    <>
      <Button onClick={() => focusComposer(conversation.startOver)} disabled={isRunning}>
        新会话
      </Button>
      <button
        ref={audit.toggle}
        type="button"
        className="w-button"
        aria-expanded={audit.isOpen}
        aria-controls="audit"
        onClick={() => audit.show(!audit.isOpen)}
      >
        审计
      </button>
    </>
  );
  return (
    <Shell title="业务数据问答" layout="fixed" actions={actions}>
      <p className={styles.session}>{id ? `会话 ${id}` : "尚未开始会话"}</p>
      <div className={styles.columns}>
        <div className={styles.chat}>
          <Log
            entries={entries}
            isRunning={isRunning}
            onRetry={() => focusComposer(conversation.retry)}
          />
          <div className={styles.composer}>
            {awaitingClarification && (
              <p className={styles.awaiting}>等待补充信息：下一条消息将作为对上面问题的回答。</p>
            )}
            <Composer
              label={awaitingClarification ? "补充信息" : "问题"}
              placeholder={PLACEHOLDERS[awaitingClarification ? "answer" : "ask"]}
              initial={suggested}
              onSend={conversation.send}
              busy={isRunning}
              onStop={id === null ? undefined : () => focusComposer(conversation.stop)}
              autoFocus
            />
          </div>
        </div>
        {audit.isOpen && (
          <Audit
            events={events}
            problem={problem}
            hasSession={id !== null}
            onRefresh={conversation.refresh}
            onClose={() => audit.show(false)}
            closeButton={audit.close}
          />
        )}
      </div>
    </Shell>
  );
}

/** Moves the focus to the composer and calls `act`, after which the pressed button disappears. */
function focusComposer(act: () => unknown): void {
  document.querySelector("textarea")?.focus();
  void act();
}

/** Opens and closes the panel. If the user does so, the focus moves with it. */
function useAudit() {
  const [isOpen, setOpen] = useState(() => matchMedia(WIDE).matches);
  const toggle = useRef<HTMLButtonElement>(null);
  const close = useRef<HTMLButtonElement>(null);
  const show = (next: boolean) => {
    // A panel that opens has its button after it is rendered.
    flushSync(() => setOpen(next));
    (next ? close : toggle).current?.focus();
  };
  return { isOpen, show, toggle, close };
}
