// Card of a completed turn: summary, source of the data, rows and plan.
import { JsonView } from "@wattle/page";
import { type Column, DataTable } from "@wattle/page/table";
import { useState } from "react";
import type { IgnoredFilter, Parts, Result, Row } from "./api.ts";
import styles from "./page.module.css";
import { columnsOf, countOf, factsOf, shown } from "./result.ts";

export function Answer({ result }: { result: Result }) {
  const execution = result.data_execution ?? {};
  const items = Array.isArray(execution.items) ? execution.items : [];
  return (
    <section className={styles.card} data-entry="answer">
      <p data-part="summary">{result.summary ?? ""}</p>
      <dl className={styles.facts}>
        {factsOf(result).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Ignored conditions={execution.plan?.ignored ?? []} />
      {items.length > 0 && <Rows items={items} result={result} />}
      <p className={styles.total}>{countOf(items.length, execution.total)}</p>
      {execution.plan && <Plan plan={execution.plan} />}
    </section>
  );
}

/** Conditions without a field in the data, which were not executed. */
function Ignored({ conditions }: { conditions: Parts<IgnoredFilter>[] }) {
  if (conditions.length === 0) return null;
  const texts = conditions.map(({ field, op, value }) => `${field} ${op} ${shown(value)}`);
  return <p className={styles.ignored}>以下条件没有对应的数据字段，未执行：{texts.join("；")}</p>;
}

function Rows({ items, result }: { items: Row[]; result: Result }) {
  const columns: Column<Row>[] = columnsOf(items, result).map(({ key, header, isNumber }) => ({
    key,
    header,
    align: isNumber ? "end" : "start",
    value: (row) => (isNumber ? (row[key] as number) : shown(row[key])),
    render: (row) => <span title={shown(row[key])}>{shown(row[key])}</span>,
  }));
  return <DataTable label="结果明细" columns={columns} rows={items} maxHeight={380} />;
}

/** Rendered only when it is opened, because most plans never are. */
function Plan({ plan }: { plan: unknown }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details className={styles.more} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>查询计划</summary>
      {isOpen && <JsonView value={plan} label="查询计划" />}
    </details>
  );
}
