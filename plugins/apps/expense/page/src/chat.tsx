// The view of the conversation.
import {
  Alert,
  Button,
  Composer,
  JsonView,
  MessageList,
  Said,
  ToolCard,
  toolState,
  useChange,
} from "@wattle/page";
import type { UIMessage } from "ai";
import { useConversation } from "./conversation.ts";
import styles from "./page.module.css";
import { stepOf } from "./steps.ts";
import { countBooked, type Thread } from "./thread.ts";

/** Suggested messages in a new conversation. */
const EXAMPLES = ["昨天打车花了20元", "今天早餐15元，午饭38元", "前天发工资 8000 元"];

const HELP = "说出花在哪里、花了多少，就能记账。日期可以说 昨天、3天前、1月2日 或 2025年1月2日。";

/** Message for a completion without text and tool calls. */
const EMPTY = "没有得到回答，请换个说法再试。";

interface ChatProps {
  loaded: Thread | undefined;
  /** Message that the URL suggests. Only the user sends it. */
  initial: string;
  zone: string;
  /** Called after a booking. */
  onBooked: () => void;
}

export function Chat({ loaded, initial, zone, onBooked }: ChatProps) {
  const { messages, isBusy, error, canRetry, send, retry } = useConversation(loaded);
  useChange(countBooked(messages), onBooked);
  const suggested =
    initial === "" ? EXAMPLES : [initial, ...EXAMPLES.filter((it) => it !== initial)];
  return (
    <>
      <MessageList busy={isBusy}>
        {messages.length === 0 && !isBusy && (
          <Welcome suggested={suggested} onChoose={(text) => void send(text).catch(() => {})} />
        )}
        {messages.map((message, at) => (
          <Message
            key={message.id}
            message={message}
            isLive={isBusy && at === messages.length - 1}
            hasFailed={error !== undefined}
            zone={zone}
          />
        ))}
        {isBusy && messages.at(-1)?.role === "user" && <p className={styles.working}>正在处理…</p>}
      </MessageList>
      {error !== undefined && (
        <Alert actions={canRetry ? <Button onClick={retry}>重试</Button> : undefined}>
          {error}
        </Alert>
      )}
      <div className={styles.composer}>
        <Composer
          label="消息"
          placeholder="例如：昨天打车花了20元"
          busy={isBusy}
          onSend={send}
          autoFocus
        />
      </div>
    </>
  );
}

interface WelcomeProps {
  suggested: readonly string[];
  onChoose: (text: string) => void;
}

function Welcome({ suggested, onChoose }: WelcomeProps) {
  return (
    <div className={styles.welcome}>
      <p>{HELP}</p>
      <ul aria-label="试一试">
        {suggested.map((text) => (
          <li key={text}>
            <Button onClick={() => onChoose(text)}>{text}</Button>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface MessageProps {
  message: UIMessage;
  isLive: boolean;
  /** True if an error already explains the missing reply. */
  hasFailed: boolean;
  zone: string;
}

function Message({ message, isLive, hasFailed, zone }: MessageProps) {
  const by = message.role;
  const isOver = by === "assistant" && !isLive && !hasFailed;
  const isEmpty = isOver && !message.parts.some(isSeen);
  return (
    <Said by={by}>
      {message.parts.map((part, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: parts of a message are only ever added.
        <Part key={at} part={part} isLive={isLive} zone={zone} />
      ))}
      {isEmpty && <Text>{EMPTY}</Text>}
    </Said>
  );
}

/** Returns true if a part is visible. */
function isSeen(part: AnyPart): boolean {
  if (part.type === "text") return part.text.trim() !== "";
  return part.type === "data-interrupt" || "toolCallId" in part;
}

type AnyPart = UIMessage["parts"][number];

function Part({ part, isLive, zone }: { part: AnyPart; isLive: boolean; zone: string }) {
  if (part.type === "text") return part.text === "" ? null : <Text>{part.text}</Text>;
  if (part.type === "data-interrupt") return <Text>这一步需要管理员确认，确认后会继续。</Text>;
  if (!("toolCallId" in part)) return null;
  const name = "toolName" in part ? part.toolName : part.type.slice("tool-".length);
  const step = stepOf(name, part.input, part.output, zone);
  const state = toolState(part.state, isLive);
  const error = part.state === "output-error" ? part.errorText : step.error;
  return (
    <ToolCard
      title={step.title}
      name={name}
      state={error !== undefined && name === "saveExpenseToLark" ? "failed" : state}
      summary={step.summary}
      error={error}
    >
      <JsonView label="参数" value={part.input ?? null} />
      {part.output !== undefined && <JsonView label="结果" value={part.output} />}
    </ToolCard>
  );
}

function Text({ children }: { children: string }) {
  return (
    <p className={styles.text} data-part="text">
      {children}
    </p>
  );
}
