// Sums of the categories as bars, in a list that is readable without the bars.
import { yuan } from "./format.ts";
import styles from "./page.module.css";
import type { Category, Kind } from "./schema.d.ts";

const NAMES: Record<Kind, string> = { consume: "支出分类", income: "收入分类" };

export function Categories({ categories }: { categories: readonly Category[] }) {
  if (categories.length === 0) return null;
  return (
    <div className={styles.plots}>
      {(["consume", "income"] as const).map((kind) => (
        <Bars key={kind} kind={kind} rows={categories.filter((row) => row.kind === kind)} />
      ))}
    </div>
  );
}

function Bars({ kind, rows }: { kind: Kind; rows: readonly Category[] }) {
  const total = rows.reduce((sum, { amount }) => sum + amount, 0);
  const most = Math.max(...rows.map(({ amount }) => amount));
  if (rows.length === 0) return null;
  return (
    <figure className={styles.plot} data-kind={kind}>
      <figcaption>{NAMES[kind]}</figcaption>
      <ul>
        {rows.map(({ category, amount, count }) => (
          <li key={category}>
            <span>{category || "（无分类）"}</span>
            <span className={styles.track} aria-hidden="true">
              <span style={{ inlineSize: `${most > 0 ? (amount / most) * 100 : 0}%` }} />
            </span>
            <span className={styles.value}>
              {yuan(amount)}
              <small>
                {total > 0 ? ` ${Math.round((amount / total) * 100)}%` : ""} · {count} 笔
              </small>
            </span>
          </li>
        ))}
      </ul>
    </figure>
  );
}
