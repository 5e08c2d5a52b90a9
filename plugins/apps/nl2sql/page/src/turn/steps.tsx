// The steps of a question in progress, with their results.
import type { ReactNode } from "react";
import { attempt, type Step } from "../chat/turns.ts";
import type {
  Detail,
  Execution,
  HiddenContextResult,
  IntentResult,
  ParseResult,
  SqlGenerationResult,
} from "../chat/types.ts";
import styles from "../page.module.css";
import { Statement } from "../result/statement.tsx";
import { Hints, replacementsOf } from "./repair.tsx";

const NAMES = {
  intent_recognition: "理解问题",
  task_parse: "解析任务",
  sql_generation: "生成查询",
  sql_validate: "执行查询",
  hidden_context: "分析原因",
  result_return: "整理结果",
} as const;

const SIGNS = { running: "…", done: "✓", failed: "✗" } as const;

interface StepsProps {
  steps: readonly Step[];
  isOpen: boolean;
  /** Text that is shown below the steps, and is not repeated in them. */
  said: string | undefined;
}

/** Open while the question is in progress. The user can close and open it at any time. */
export function Steps({ steps, isOpen, said }: StepsProps) {
  const failures = steps.filter(({ status }) => status === "failed").length;
  return (
    <details className={styles.steps} data-part="steps" open={isOpen}>
      <summary>
        步骤（{steps.length}）{failures > 0 && `，其中 ${failures} 步失败`}
      </summary>
      <ol aria-label="步骤">
        {steps.map((step, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: steps are only added, and a loop repeats names.
          <StepRow key={at} step={step} attempt={attempt(steps, at)} said={said} />
        ))}
      </ol>
    </details>
  );
}

interface StepProps {
  step: Step;
  attempt: number;
  said: string | undefined;
}

function StepRow({ step, attempt, said }: StepProps) {
  const { name, status, message, detail } = step;
  const isRepeated = attempt > 1 && (name === "sql_generation" || name === "sql_validate");
  return (
    <li
      data-step={name}
      data-status={status}
      aria-current={status === "running" ? "step" : undefined}
    >
      <p className={styles.stepLine}>
        <span className={styles.stepSign} aria-hidden="true">
          {SIGNS[status]}
        </span>
        <strong>{NAMES[name]}</strong>
        {isRepeated && <span className={styles.tag}>第 {attempt} 次</span>}
        <span className="w-note">{status === "failed" ? "失败" : message}</span>
      </p>
      {detail !== undefined && <div className={styles.stepDetail}>{shown(name, detail)}</div>}
      {detail === undefined && status === "failed" && message !== said && (
        <p className={styles.failure}>{message}</p>
      )}
    </li>
  );
}

function shown(name: Step["name"], detail: Detail): ReactNode {
  switch (name) {
    case "intent_recognition":
      return <Understood intent={detail as IntentResult} />;
    case "task_parse":
      return <Parsed task={detail as ParseResult} />;
    case "sql_generation":
      return <Generated generation={detail as SqlGenerationResult} />;
    case "sql_validate":
      return <Executed execution={detail as Execution} />;
    case "hidden_context":
      return <Hints context={detail as HiddenContextResult} />;
    default:
      return null;
  }
}

function Understood({ intent }: { intent: IntentResult }) {
  const { intent: kind, confidence, is_followup, rewritten_query } = intent;
  return (
    <p>
      {kind === "chat" ? "闲聊" : "数据问题"}（把握 {Math.round(confidence * 100)}%）
      {is_followup && `，结合上文理解为：${rewritten_query}`}
    </p>
  );
}

const OPERATIONS = { detail: "明细", aggregate: "汇总", ranking: "排名", trend: "趋势" } as const;

function Parsed({ task }: { task: ParseResult }) {
  const { start, end } = task.time_range;
  const parts = [
    OPERATIONS[task.operation],
    task.metrics.length > 0 && `指标 ${task.metrics.join("、")}`,
    task.dimensions.length > 0 && `按 ${task.dimensions.join("、")}`,
    ...task.filters.map(({ field, op, value }) => `${field} ${op} ${JSON.stringify(value)}`),
    (start !== null || end !== null) && `${start ?? "最早"} 至 ${end ?? "最新"}`,
  ];
  return <p>{parts.filter((part) => part !== false).join("；")}</p>;
}

function Generated({ generation }: { generation: SqlGenerationResult }) {
  const { sql } = generation;
  const replaced = replacementsOf(generation);
  return (
    <>
      {"generation_error" in generation && (
        <p className={styles.failure}>{generation.generation_error}</p>
      )}
      {replaced.length > 0 && (
        <p>已替换字段：{replaced.map(({ from, to }) => `${from} → ${to}`).join("，")}</p>
      )}
      {sql !== "" && <Statement sql={sql} />}
    </>
  );
}

function Executed({ execution }: { execution: Execution }) {
  const { is_valid, error, rows, empty_result, zero_metric_result } = execution;
  if (!is_valid) return <p className={styles.failure}>{error}</p>;
  if (empty_result) return <p>没有查到数据</p>;
  return <p>{zero_metric_result ? "统计结果为 0" : `查到 ${rows} 行`}</p>;
}
