// The errors before an answer, and their corrections.
import type { HiddenContextResult, Result, SqlGenerationResult } from "../chat/types.ts";
import styles from "../page.module.css";
import { Statement } from "../result/statement.tsx";

const KINDS: Record<string, string> = {
  execution_error: "执行错误",
  unknown_column: "字段不存在",
  unknown_table: "表不存在",
  syntax_error: "语法错误",
  object_not_found: "对象不存在",
};

/** Texts for the app's codes of a result without an error. */
const TEXTS: Record<string, string> = {
  empty_result: "没有查到数据",
  zero_metric_result: "统计结果为 0",
};

/** Returns the cause in a few words. A result without rows is not an execution error. */
function causeOf({ error, error_type: kind }: HiddenContextResult): string {
  return TEXTS[error] ?? KINDS[kind] ?? kind;
}

/** Returns the fields that replace unknown ones in a statement. */
export function replacementsOf(generation: SqlGenerationResult | null) {
  if (generation === null || "generation_failed" in generation) return [];
  return generation.applied_field_replacements;
}

/** The retries of an answer, with the last hidden context. */
export function Repair({ result }: { result: Result }) {
  const { hidden_context_result: context, hidden_context_retry_count: retries } = result;
  const replaced = replacementsOf(result.sql_result);
  if (retries === 0 && replaced.length === 0) return null;
  const isMended = result.final_status === "success";
  return (
    <details className={styles.repair} data-part="repair" data-mended={isMended}>
      <summary>
        重试 {retries} 次{isMended ? "后成功" : "后仍未成功"}
        {context !== null && `：${causeOf(context)}`}
      </summary>
      <Replacements replaced={replaced} />
      {context !== null && <Hints context={context} />}
    </details>
  );
}

function Replacements({ replaced }: { replaced: ReturnType<typeof replacementsOf> }) {
  if (replaced.length === 0) return null;
  return (
    <ul aria-label="替换的字段">
      {replaced.map(({ from, to }) => (
        <li key={`${from} ${to}`}>
          <code>{from}</code> → <code>{to}</code>
        </li>
      ))}
    </ul>
  );
}

/** The error, the failed statement, and the hints for the next attempt. */
export function Hints({ context }: { context: HiddenContextResult }) {
  const { error, failed_sql: sql, hints } = context;
  return (
    <>
      <p>
        <span className={styles.tag}>{causeOf(context)}</span>{" "}
        {TEXTS[error] === undefined && <span className={styles.failure}>{error}</span>}
      </p>
      {sql !== "" && <Statement sql={sql} label="失败的 SQL" />}
      {hints.length > 0 && (
        <ul aria-label="给下一次尝试的提示">
          {hints.map((hint) => (
            <li key={hint}>{hint}</li>
          ))}
        </ul>
      )}
    </>
  );
}
