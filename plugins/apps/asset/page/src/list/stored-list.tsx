// Lists of the stored trades and holdings, of one portfolio or of all.
import { Button, inOrder, Panel, toast } from "@wattle/page";
import { type Column, DataTable } from "@wattle/page/table";
import { useEffect, useMemo, useState } from "react";
import { type Holding, listStored, type Operation, type Portfolio } from "../api.ts";
import { RISKS } from "../confirm/review-form.tsx";

const NUMBERS = new Intl.NumberFormat("zh-CN", { maximumFractionDigits: 8 });

interface Props {
  portfolioId: number | undefined;
  portfolios: readonly Portfolio[];
  /** Counter; the list is read again when it changes. */
  version: number;
}

export function OperationList(props: Props) {
  const columns: Column<Operation>[] = [
    { key: "tradedAt", header: "日期", value: (row) => row.tradedAt },
    {
      key: "action",
      header: "操作",
      value: (row) => row.action,
      render: (row) => (row.action === "buy" ? "买入" : "卖出"),
    },
    ...security<Operation>(),
    number<Operation>("quantity", "数量", (row) => row.quantity),
    number<Operation>("price", "价格", (row) => row.price),
    ...booking<Operation>(props.portfolios),
  ];
  return <StoredList title="交易记录" kind="operations" columns={columns} {...props} />;
}

export function HoldingList(props: Props) {
  const columns: Column<Holding>[] = [
    ...security<Holding>(),
    number<Holding>("quantity", "持仓数量", (row) => row.quantity),
    number<Holding>("costPrice", "成本价", (row) => row.costPrice),
    ...booking<Holding>(props.portfolios),
  ];
  return <StoredList title="持仓" kind="holdings" columns={columns} {...props} />;
}

function number<R>(key: string, header: string, value: (row: R) => number): Column<R> {
  return { key, header, value, align: "end", render: (row) => NUMBERS.format(value(row)) };
}

function security<R extends { ticker: string; name: string }>(): Column<R>[] {
  return [
    { key: "ticker", header: "股票代码", value: (row) => row.ticker },
    { key: "name", header: "股票名称", value: (row) => row.name },
  ];
}

interface Booked {
  currency: string;
  portfolioId: number;
  riskCategory: string;
}

function booking<R extends Booked>(portfolios: readonly Portfolio[]): Column<R>[] {
  const portfolio = (id: number) => portfolios.find((it) => it.id === id)?.name ?? String(id);
  const risk = (value: string) => RISKS.find((it) => it.value === value)?.name ?? value;
  return [
    { key: "currency", header: "币种", value: (row) => row.currency },
    { key: "portfolio", header: "组合", value: (row) => portfolio(row.portfolioId) },
    { key: "risk", header: "风险类别", value: (row) => risk(row.riskCategory) },
  ];
}

interface ListProps<R> extends Props {
  title: string;
  kind: "operations" | "holdings";
  columns: readonly Column<R>[];
}

/** Rows that were read, and the id before which older ones begin. */
interface List<R> {
  portfolioId: number | undefined;
  rows: readonly R[];
  next: number | null;
}

function StoredList<R extends { id: number }>(props: ListProps<R>) {
  const { title, kind, columns, portfolioId, version } = props;
  const [list, setList] = useState<List<R>>();
  const readNewest = useMemo(
    () => inOrder((id: number | undefined) => listStored<R>(kind, id)),
    [kind],
  );
  useEffect(() => {
    void version;
    readNewest(portfolioId)
      .then((page) => {
        if (page !== undefined) setList({ portfolioId, rows: page.items, next: page.nextBefore });
      })
      .catch(showFailure);
  }, [readNewest, portfolioId, version]);
  const more = async (known: List<R>, before: number) => {
    const page = await listStored<R>(kind, known.portfolioId, before);
    // The list may have been read again meanwhile, or continued after another click.
    const rows = [...known.rows, ...page.items];
    setList((now) => (now === known ? { ...known, rows, next: page.nextBefore } : now));
  };
  const shown = list?.portfolioId === portfolioId ? list : undefined;
  const next = shown?.next ?? null;
  return (
    <Panel title={title}>
      {shown === undefined ? (
        <p className="w-note">正在读取…</p>
      ) : (
        <DataTable
          label={title}
          columns={columns}
          rows={shown.rows}
          rowKey={(row) => row.id}
          maxHeight={360}
          empty="还没有记录"
        />
      )}
      {shown !== undefined && next !== null && (
        <Button onClick={() => void more(shown, next).catch(showFailure)}>更早的记录</Button>
      )}
    </Panel>
  );
}

function showFailure(error: Error): void {
  toast(error.message, "error");
}
