// The conversation: status of the session, first message, further messages, and the input field.
import { Alert, Announce, Button, Composer, MessageList, useOnce } from "@wattle/page";
import { textOf } from "@wattle/page/ai";
import type { Conversation } from "./conversation.ts";
import { Message } from "./message.tsx";
import styles from "./page.module.css";
import { firstOf } from "./parts.ts";
import { FinalTime, STATUS_NAMES, StatusMark } from "./status.tsx";
import { titleOf } from "./tools.ts";

interface ChatPanelProps {
  conversation: Conversation;
  onOpen: (view: "blocks" | "html") => void;
}

export function ChatPanel({ conversation, onOpen }: ChatPanelProps) {
  const { messages, isBusy, session } = conversation;
  const [stop, isStopping] = useOnce(conversation.stop);
  const first = firstOf(messages);
  const shown = messages.filter((message) => message !== first);
  const last = messages.at(-1);
  return (
    <section className={styles.chat} aria-label="对话">
      <Summary conversation={conversation} />
      {first && (
        <div className={styles.first}>
          <h2 className="w-hidden">最初的要求</h2>
          <p data-part="first">{textOf(first)}</p>
        </div>
      )}
      <MessageList busy={isBusy}>
        {shown.map((message) => (
          <Message
            key={message.id}
            message={message}
            isLive={isBusy && message === last}
            cancelled={conversation.cancelled}
            onOpen={onOpen}
          />
        ))}
        {isBusy && <p className={styles.working}>正在生成…</p>}
        <Failure conversation={conversation} />
      </MessageList>
      <Announce>{isBusy ? "正在生成" : STATUS_NAMES[session.status]}</Announce>
      <div className={styles.compose}>
        <Composer
          label="消息"
          placeholder={first ? "补充要求，或让它继续" : "粘贴视频链接，或描述旅行要求"}
          busy={isBusy || isStopping}
          onSend={conversation.send}
          onStop={isBusy ? () => void stop() : undefined}
        />
      </div>
    </section>
  );
}

/** Status and time of the session. */
function Summary({ conversation: { session, isBusy, retry } }: { conversation: Conversation }) {
  const status = isBusy ? "RUNNING" : session.status;
  const step = isBusy ? session.currentStep : session.failedStep;
  const canGoOn = !isBusy && (status === "CANCELLED" || status === "ERROR");
  return (
    <div className={styles.summary} data-part="summary">
      <StatusMark status={status} />
      {step && <span>{titleOf(step)}</span>}
      <FinalTime session={session} />
      {canGoOn && <Button onClick={retry}>继续</Button>}
      {!isBusy && session.lastError && <p className={styles.error}>{session.lastError}</p>}
    </div>
  );
}

/** The reason why there is no answer. */
function Failure({ conversation: { error, unsent, retry } }: { conversation: Conversation }) {
  if (error === undefined) return null;
  return (
    <Alert actions={<Button onClick={retry}>{unsent === undefined ? "继续" : "重试"}</Button>}>
      <p>{unsent === undefined ? error : `消息未发送：${error}`}</p>
      {unsent !== undefined && <blockquote className={styles.unsent}>{unsent}</blockquote>}
    </Alert>
  );
}
