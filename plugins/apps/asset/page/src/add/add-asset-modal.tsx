// Dialog of one round: an input, then its result to confirm. It stores only the id of the thread.
import { Alert, Announce, Banner, Composer, Dialog, Toasts, useFiles } from "@wattle/page";
import { useEffect, useEffectEvent, useState } from "react";
import { type Input, isGone, type ReviewEvent, readThread } from "../api.ts";
import { ReviewForm } from "../confirm/review-form.tsx";
import styles from "./add.module.css";
import { EndedThread, parse, type Step } from "./parse.ts";
import { ACCEPT, dataUrl, MOST_BYTES } from "./picture.ts";
import { Progress } from "./progress.tsx";
import { type OwnThread, savedThread, useOwnThread } from "./thread.ts";

/** Phase of the dialog. The phase `work` parses an input or restores a saved thread. */
type Phase =
  | { name: "input"; message?: string }
  | { name: "work"; steps: readonly Step[] }
  | { name: "result"; review: ReviewEvent };

interface Props {
  open: boolean;
  /** Initial text of the field. */
  initial: string;
  onClose: () => void;
  onStored: (count: number) => void;
}

/** Dialog that adds assets. */
export function AddAssetModal({ open, initial, onClose, onStored }: Props) {
  // A store may end after the dialog was closed, so the thread outlives the content of the dialog.
  const thread = useOwnThread(() => {
    if (open) onStored(0);
  });
  return (
    <Dialog open={open} title="新增资产" onClose={onClose} wide>
      <Banner />
      <Round initial={initial} thread={thread} onStored={onStored} />
      <Toasts />
    </Dialog>
  );
}

interface RoundProps extends Pick<Props, "initial" | "onStored"> {
  thread: OwnThread;
}

function Round({ initial, thread, onStored }: RoundProps) {
  const [phase, setPhase] = useState<Phase>({ name: "input" });
  const files = useFiles({ accept: ACCEPT, maxBytes: MOST_BYTES });
  const open = useEffectEvent(() => goOn(thread, setPhase, onStored));
  useEffect(() => open(), []);

  const send = async (text: string) => {
    setPhase({ name: "work", steps: [] });
    let threadId: string | undefined;
    try {
      const input = await inputOf(text, files.items[0]?.file);
      const review = await parse(input, {
        onThread: (id) => {
          threadId = id;
          thread.keep(id);
        },
        onSteps: (steps) => setPhase({ name: "work", steps }),
      });
      files.clear();
      setPhase({ name: "result", review });
    } catch (error) {
      // After another error the run may go on, and the thread gets its result.
      const hasEnded = error instanceof EndedThread || isGone(error);
      if (threadId !== undefined && hasEnded) thread.forget(threadId);
      setPhase({ name: "input", message: messageOf(error) });
      throw error;
    }
  };
  const startOver = (threadId: string, message?: string) => {
    thread.end(threadId);
    setPhase(message === undefined ? { name: "input" } : { name: "input", message });
  };

  if (phase.name === "result") {
    const { review } = phase;
    return (
      <ReviewForm
        key={review.threadId}
        review={review}
        onAgain={() => startOver(review.threadId)}
        onExpired={(message) => startOver(review.threadId, message)}
        onStored={(count) => {
          thread.end(review.threadId);
          onStored(count);
        }}
      />
    );
  }
  const isAtWork = phase.name === "work";
  return (
    <div className={styles.input}>
      {phase.name === "input" && phase.message !== undefined && <Alert>{phase.message}</Alert>}
      <p className="w-note">
        用一句话描述交易或持仓，或粘贴、拖入、选择一张券商截图（PNG、JPEG、WebP、GIF，最大 10 MB）。
      </p>
      <Composer
        label="描述交易或持仓"
        placeholder="例如：昨天买入腾讯 100 股 320"
        initial={initial}
        send="开始解析"
        onSend={send}
        busy={isAtWork}
        disabled={isAtWork}
        files={files}
        autoFocus
      />
      {phase.name === "work" && <Progress steps={phase.steps} />}
      <Announce>
        {phase.name === "work" ? (phase.steps.at(-1)?.message ?? "正在开始") : ""}
      </Announce>
    </div>
  );
}

/**
 * Continues the saved thread. A thread that is gone is removed without a message. After another
 * error the thread is kept, and the dialog continues it when it is opened again.
 */
function goOn(
  thread: OwnThread,
  show: (phase: Phase) => void,
  onStored: (count: number) => void,
): void {
  const threadId = savedThread();
  if (threadId === undefined) return;
  thread.keep(threadId);
  const waiting: Step = { node: "resume", message: "正在恢复上次的结果", isDone: false };
  show({ name: "work", steps: [waiting] });
  readThread(threadId).then(
    ({ reviewPayload, storeResult }) => {
      if (reviewPayload) return show({ name: "result", review: { threadId, reviewPayload } });
      thread.end(threadId);
      show({ name: "input" });
      if (storeResult) onStored(storeResult.ids.length);
    },
    (error: unknown) => {
      if (!isGone(error)) return show({ name: "input", message: messageOf(error) });
      thread.forget(threadId);
      show({ name: "input" });
    },
  );
}

async function inputOf(text: string, picture: File | undefined): Promise<Input> {
  const input: Input = {};
  if (text !== "") input.textInput = text;
  if (picture !== undefined) input.imageData = await dataUrl(picture);
  return input;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
