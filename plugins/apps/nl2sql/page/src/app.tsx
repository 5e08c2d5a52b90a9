// The page: the list of sessions, and the open conversation.
import { useQuery } from "@tanstack/react-query";
import { Button, Composer, Dialog, MessageList, Said, Shell, takeSuggestion } from "@wattle/page";
import { useState } from "react";
import { suggestions } from "./chat/api.ts";
import { type Conversation, useConversation } from "./chat/conversation.ts";
import { useSessions } from "./chat/sessions.ts";
import { History } from "./history/history.tsx";
import styles from "./page.module.css";
import { TurnView } from "./turn/turn.tsx";

export function App() {
  const sessions = useSessions().data?.sessions;
  const conversation = useConversation();
  const title = sessions?.find(({ session_id: id }) => id === conversation.session)?.title;
  const [suggested] = useState(takeSuggestion);
  const [isListOpen, setListOpen] = useState(false);
  const open = (session: string | undefined) => {
    setListOpen(false);
    conversation.open(session);
  };
  const list = (
    <History current={conversation.session} onOpen={open} onChanged={conversation.changed} />
  );
  const actions = (
    <>
      <Button className={styles.onlyNarrow} onClick={() => setListOpen(true)}>
        历史
      </Button>
      <Button onClick={() => open(undefined)}>新会话</Button>
    </>
  );
  return (
    <Shell
      title="数据问答"
      tab={title === undefined ? "数据问答" : `${title} · 数据问答`}
      layout="fixed"
      actions={actions}
    >
      <div className={styles.columns}>
        <nav className={styles.side} aria-label="历史会话">
          {list}
        </nav>
        <section className={styles.conversation} aria-label="对话">
          <Turns conversation={conversation} />
          <div className={styles.ask}>
            <Composer
              key={conversation.session ?? "new"}
              label="问题"
              placeholder="用自然语言提问，例如：2024年每月的销售额"
              initial={conversation.session === undefined ? suggested : ""}
              busy={conversation.isBusy}
              onSend={conversation.send}
            />
          </div>
        </section>
      </div>
      <Dialog open={isListOpen} title="历史会话" onClose={() => setListOpen(false)} closeBeside>
        {list}
      </Dialog>
    </Shell>
  );
}

function Turns({ conversation }: { conversation: Conversation }) {
  const { session, turns, isBusy, isLoading, send } = conversation;
  if (turns.length === 0 && isLoading) {
    return <p className={`${styles.empty} w-note`}>正在加载…</p>;
  }
  if (turns.length === 0) return <Welcome onAsk={send} busy={isBusy} />;
  return (
    <MessageList label="问题与回答" busy={isBusy}>
      {turns.map((turn) => (
        <div key={turn.key} className={styles.turn} data-part="turn">
          <Said by="user">{turn.question}</Said>
          <Said by="assistant">
            <TurnView turn={turn} session={session ?? ""} />
          </Said>
        </div>
      ))}
    </MessageList>
  );
}

/** Example questions, as the operator has configured them. */
function Welcome({ onAsk, busy }: { onAsk: (text: string) => Promise<void>; busy: boolean }) {
  // The field works without them, and the banner shows a lost connection.
  const { data } = useQuery({
    queryKey: ["suggestions"],
    queryFn: suggestions,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <div className={styles.empty}>
      <h2>想了解什么数据？</h2>
      <p className="w-note">问题会变成一条只读的 SQL 查询，结果以表格和图表显示。</p>
      <ul className={styles.examples} aria-label="示例问题">
        {data?.suggestions.map((text) => (
          <li key={text}>
            <Button busy={busy} onClick={() => void onAsk(text).catch(() => undefined)}>
              {text}
            </Button>
          </li>
        ))}
      </ul>
    </div>
  );
}
