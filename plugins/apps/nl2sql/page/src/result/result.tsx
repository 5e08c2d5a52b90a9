// The answer: text, plot, table, file and statement.
import { skipToken, useQuery } from "@tanstack/react-query";
import { Alert, Button, saveFile, useOnce } from "@wattle/page";
// biome-ignore lint/style/noRestrictedImports: a file, which has no JSON document
import { send } from "@wattle/page/api";
import { type Column, DataTable } from "@wattle/page/table";
import { useMemo } from "react";
import { allRows } from "../chat/api.ts";
import type { Result, Row } from "../chat/types.ts";
import { report } from "../failure.ts";
import styles from "../page.module.css";
import { Chart } from "./chart.tsx";
import { naturalPlot } from "./natural.ts";
import { Statement } from "./statement.tsx";
import { columnsOf, distinct, isNumeric, numberOf, rowsOf, textOf } from "./value.ts";

const STATUS = { success: "成功", partial_success: "部分成功", failed: "失败" } as const;

interface ResultProps {
  result: Result;
  session: string;
  messageId: number | undefined;
}

export function ResultView({ result, session, messageId }: ResultProps) {
  const { rows, isComplete, error } = useRows(result, session, messageId);
  const isData = result.intent === "business_query";
  const plot = useMemo(() => (isComplete ? naturalPlot(rows) : undefined), [rows, isComplete]);
  const sql = statementOf(result);
  return (
    <div className={styles.result} data-part="result" data-status={result.final_status}>
      {isData && (
        <span className={`${styles.tag} ${styles.status}`}>{STATUS[result.final_status]}</span>
      )}
      <p className={styles.summary} data-part="summary">
        {result.summary}
      </p>
      {plot !== undefined && <Chart plot={plot} />}
      {rows.length > 0 && <Table rows={rows} isComplete={isComplete} />}
      {error !== null && (
        <Alert kind="warning">
          只显示前 {rows.length} 行：{error.message}
        </Alert>
      )}
      {result.download_url !== null && <Download path={result.download_url} />}
      {sql !== "" && (
        <details className={styles.statement} data-part="statement">
          <summary>SQL</summary>
          <Statement sql={sql} />
        </details>
      )}
    </div>
  );
}

function statementOf({ sql_validate_result: validated, sql_result: generated }: Result): string {
  return (validated?.executed_sql || generated?.sql) ?? "";
}

/** Returns all rows: those of the answer itself, or those of the history once they are loaded. */
function useRows(result: Result, session: string, messageId: number | undefined) {
  const given = rowsOf(result);
  const isPart = messageId !== undefined && given.length < (result.sql_validate_result?.rows ?? 0);
  const { data, error } = useQuery({
    queryKey: ["rows", session, messageId],
    queryFn: isPart ? () => allRows(session, messageId) : skipToken,
    // The rows of an answer never change.
    enabled: ({ state }) => state.data === undefined,
  });
  const found = data ?? given;
  const operation = result.task?.operation;
  const rows = useMemo(() => distinct(found, operation), [found, operation]);
  return { rows, isComplete: !isPart || data !== undefined, error };
}

function Table({ rows, isComplete }: { rows: readonly Row[]; isComplete: boolean }) {
  const columns = useMemo(
    () =>
      columnsOf(rows).map((name): Column<Row> => {
        const isFigure = isNumeric(rows, name);
        return {
          key: name,
          header: name,
          align: isFigure ? "end" : "start",
          value: (row) => (isFigure ? numberOf(row[name]) : textOf(row[name])),
          // The text of the cell, because a number would lose digits.
          render: (row) => <span title={textOf(row[name])}>{textOf(row[name])}</span>,
        };
      }),
    [rows],
  );
  return (
    <>
      <DataTable label="查询结果" columns={columns} rows={rows} maxHeight={400} />
      <p className="w-note">
        {isComplete ? `共 ${rows.length.toLocaleString("zh-CN")} 行` : "正在加载其余的行…"}
      </p>
    </>
  );
}

/** A button for the file of the endpoint, which is available for some days only. */
function Download({ path }: { path: string }) {
  const [save, isBusy] = useOnce(async () => {
    try {
      const response = await send(path);
      saveFile(path.split("/").at(-1) ?? "result.csv", await response.blob(), "text/csv");
    } catch (error) {
      report(error);
    }
  });
  return (
    <div className="w-actions">
      <Button busy={isBusy} onClick={() => void save()}>
        下载 CSV
      </Button>
    </div>
  );
}
