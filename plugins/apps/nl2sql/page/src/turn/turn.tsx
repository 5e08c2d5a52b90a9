// The answer to one question: its steps while it is in progress, then the result.
import { Alert, Announce } from "@wattle/page";
import type { Turn } from "../chat/turns.ts";
import styles from "../page.module.css";
import { ResultView } from "../result/result.tsx";
import { Repair } from "./repair.tsx";
import { Steps } from "./steps.tsx";

export function TurnView({ turn, session }: { turn: Turn; session: string }) {
  const { state, steps, result, error, messageId } = turn;
  return (
    <>
      {steps.length > 0 && <Steps steps={steps} isOpen={state !== "done"} said={error} />}
      {state === "waiting" && (
        <p className={styles.working} role="status">
          正在处理这个问题，完成后会显示结果…
        </p>
      )}
      {result !== undefined && (
        <>
          <Repair result={result} />
          <ResultView result={result} session={session} messageId={messageId} />
        </>
      )}
      {state === "failed" && error !== undefined && <Alert>{error}</Alert>}
      <Announce>{spoken(turn)}</Announce>
    </>
  );
}

/** Returns the text for screen readers: the step that has started, then the answer. */
function spoken({ state, steps, result }: Turn): string {
  // An answer that was loaded with the history is not announced.
  if (steps.length === 0) return "";
  if (state === "done") return result?.summary ?? "";
  return state === "running" ? (steps.at(-1)?.message ?? "") : "";
}
