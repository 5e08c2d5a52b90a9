// Lists of the stored trades and holdings, of one portfolio or of all.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Alert, Button, Panel } from "@wattle/page";
import { type Column, DataTable } from "@wattle/page/table";
import { type Holding, listStored, type Operation, type Portfolio } from "../api.ts";
import { RISKS } from "../confirm/review-form.tsx";

const NUMBERS = new Intl.NumberFormat("zh-CN", { maximumFractionDigits: 8 });

interface Props {
  portfolioId: number | undefined;
  portfolios: readonly Portfolio[];
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

function StoredList<R extends { id: number }>(props: ListProps<R>) {
  const { title, kind, columns, portfolioId } = props;
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: ["stored", kind, portfolioId],
    queryFn: ({ pageParam }) => listStored<R>(kind, portfolioId, pageParam),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: ({ nextBefore }) => nextBefore,
  });
  return (
    <Panel title={title}>
      {error && <Alert kind={data ? "warning" : "error"}>{error.message}</Alert>}
      {!data && !error && <p className="w-note">正在读取…</p>}
      {data && (
        <DataTable
          label={title}
          columns={columns}
          rows={data.pages.flatMap(({ items }) => items)}
          rowKey={(row) => row.id}
          maxHeight={360}
          empty="还没有记录"
        />
      )}
      {hasNextPage && (
        <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          更早的记录
        </Button>
      )}
    </Panel>
  );
}
