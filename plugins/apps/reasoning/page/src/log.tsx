// The entries of the conversation.
import { Alert, Button, MessageList, Said } from "@wattle/page";
import { Answer } from "./answer.tsx";
import type { Entry } from "./entries.ts";
import styles from "./page.module.css";

interface LogProps {
  entries: readonly Entry[];
  isRunning: boolean;
  onRetry: () => void;
}

export function Log({ entries, isRunning, onRetry }: LogProps) {
  return (
    <MessageList busy={isRunning}>
      {entries.length === 0 && !isRunning && <Welcome />}
      {entries.map((entry) => (
        <OneEntry key={entry.key} entry={entry} onRetry={onRetry} />
      ))}
      {isRunning && (
        <div className={styles.card} data-entry="working">
          <span className={styles.spinner} />
          <span>正在分析，请稍候…</span>
        </div>
      )}
    </MessageList>
  );
}

function Welcome() {
  return (
    <section className={styles.welcome}>
      <h2>想了解什么业务数据？</h2>
      <p>用一句话提问。信息不足时会先向您确认，再给出结论和明细。</p>
    </section>
  );
}

function OneEntry({ entry, onRetry }: { entry: Entry; onRetry: () => void }) {
  switch (entry.kind) {
    case "said":
      return <Said by="user">{entry.text}</Said>;
    case "asked":
      return (
        <section className={styles.card} data-entry="asked">
          <h3>需要补充信息</h3>
          <p>{entry.question}</p>
        </section>
      );
    case "answer":
      return <Answer result={entry.result} />;
    case "notice":
      return (
        <section className={styles.card} data-entry="notice">
          <p>{entry.text}</p>
        </section>
      );
    case "unrun":
      return (
        <section className={styles.card} data-entry="unrun">
          <p>这条消息还没有运行。</p>
          <Button onClick={onRetry}>运行</Button>
        </section>
      );
    case "failed":
      return (
        <Alert actions={entry.mayRetry ? <Button onClick={onRetry}>重试</Button> : undefined}>
          <h3>没有得到结果</h3>
          <p>{entry.message}</p>
          <p className={styles.code}>错误代码 {entry.code}</p>
        </Alert>
      );
  }
}
