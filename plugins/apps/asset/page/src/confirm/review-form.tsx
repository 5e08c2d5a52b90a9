// Form of a review: warnings, table, portfolio, risk category, and the button that stores the rows.
import { useQueryClient } from "@tanstack/react-query";
import {
  Alert,
  Announce,
  ApiError,
  Button,
  fieldsOf,
  Segments,
  SelectField,
  useOnce,
  usePersistent,
} from "@wattle/page";
import { useCallback, useMemo, useState } from "react";
import { makePortfolio, type ReviewEvent, resume } from "../api.ts";
import { AssetConfirmTable } from "./asset-confirm-table.tsx";
import styles from "./confirm.module.css";
import {
  blankRow,
  COLUMNS,
  confirmedRows,
  draftOf,
  type FieldName,
  flaws,
  type Kind,
} from "./draft.ts";
import { type Choice, isChosen, PORTFOLIOS, PortfolioField } from "./portfolio-field.tsx";

/** Status of a thread that has expired. */
const GONE = 410;

export const RISKS = [
  { value: "conservative", name: "保守型" },
  { value: "moderate", name: "稳健型" },
  { value: "balanced", name: "平衡型" },
  { value: "aggressive", name: "进取型" },
] as const;

interface Props {
  review: ReviewEvent;
  onStored: (count: number) => void;
  /** Called if the thread has expired, with the message of the server. */
  onExpired: (message: string) => void;
  onAgain: () => void;
}

export function ReviewForm({ review, onStored, onExpired, onAgain }: Props) {
  const { threadId, reviewPayload: payload } = review;
  const [kind, setKind] = useState<Kind>(payload.type === "holding" ? "holding" : "operation");
  const [rows, setRows] = useState(() => draftOf(payload));
  const [fresh, setFresh] = useState<number>();
  const [refused, setRefused] = useState<readonly string[]>([]);
  const [error, setError] = useState<string>();
  const [choice, setChoice] = useState<Choice>();
  const [risk, setRisk] = usePersistent<string>("wattle-asset-risk", "moderate");
  const client = useQueryClient();

  const found = useMemo(() => flaws(kind, rows), [kind, rows]);
  const edit = useCallback((key: number, field: FieldName, text: string) => {
    setRows((now) =>
      now.map((row) =>
        row.key === key ? { ...row, texts: { ...row.texts, [field]: text } } : row,
      ),
    );
    setRefused([]);
  }, []);
  const remove = useCallback((key: number) => {
    setRows((now) => now.filter((row) => row.key !== key));
    setRefused([]);
  }, []);
  const add = () => {
    const row = blankRow();
    setRows((now) => [...now, row]);
    setFresh(row.key);
  };

  /** Makes the new portfolio. Another attempt to store the rows does not make it again. */
  const make = async (name: string) => {
    const made = await makePortfolio(name);
    client.setQueryData(PORTFOLIOS.queryKey, (known = []) => [
      ...known.filter(({ id }) => id !== made.id),
      made,
    ]);
    setChoice(made.id);
    return made.id;
  };
  const [store, isStoring] = useOnce(async () => {
    if (choice === undefined) return;
    setError(undefined);
    try {
      const portfolioId = typeof choice === "string" ? await make(choice.trim()) : choice;
      const confirmed = { type: kind, rows: confirmedRows(kind, rows), riskCategory: risk };
      const stored = await resume(threadId, { ...confirmed, portfolioId });
      onStored(stored.ids.length);
    } catch (failure) {
      if (!(failure instanceof ApiError)) throw failure;
      if (failure.status === GONE) onExpired(failure.message);
      else {
        setError(failure.message);
        setRefused(refusedFields(failure));
      }
    }
  });

  const isReady = rows.length > 0 && found.length === 0 && isChosen(choice);
  const open = hint(kind, rows.length, found, choice);
  return (
    <div className={styles.review}>
      {payload.warnings.length > 0 && (
        <ul className={styles.warnings} aria-label="提示">
          {payload.warnings.map((warning) => (
            <li key={warning}>{warning}</li>
          ))}
        </ul>
      )}
      {payload.type === "unknown" && (
        <Segments
          label="记录类型"
          value={kind}
          onChange={setKind}
          options={[
            { value: "operation", name: "交易" },
            { value: "holding", name: "持仓" },
          ]}
        />
      )}
      <AssetConfirmTable
        kind={kind}
        rows={rows}
        refused={refused}
        onEdit={edit}
        onDelete={remove}
        fresh={fresh}
      />
      <div className={styles.row}>
        <Button onClick={add}>添加一行</Button>
        <span className="w-note">共 {rows.length} 行</span>
      </div>
      <div className={styles.choices}>
        <PortfolioField choice={choice} onChange={setChoice} />
        <SelectField label="风险类别" value={risk} onChange={setRisk} options={RISKS} />
      </div>
      {error !== undefined && <Alert>{error}</Alert>}
      <div className={styles.row}>
        <Button kind="primary" disabled={!isReady} busy={isStoring} onClick={() => void store()}>
          确认添加到组合
        </Button>
        <Button disabled={isStoring} onClick={onAgain}>
          重新输入
        </Button>
        <span className="w-note">{open}</span>
      </div>
      <Announce>{open}</Announce>
    </div>
  );
}

/** Returns what is left to do as one sentence, which is empty if nothing is left. */
function hint(kind: Kind, count: number, found: ReturnType<typeof flaws>, choice: Choice): string {
  const [first] = found;
  if (count === 0) return "请添加至少一行";
  if (first !== undefined) {
    const heading = COLUMNS[kind].find(({ field }) => field === first.field)?.heading ?? "";
    return `还有 ${found.length} 处需要处理：第 ${first.row + 1} 行${heading}，${first.reason}`;
  }
  return isChosen(choice) ? "" : "请选择投资组合";
}

/** Returns the invalid fields of an error response such as `{error, fields}`. */
function refusedFields({ body }: ApiError): string[] {
  const { fields } = fieldsOf(body);
  return Array.isArray(fields) ? fields.filter((name) => typeof name === "string") : [];
}
