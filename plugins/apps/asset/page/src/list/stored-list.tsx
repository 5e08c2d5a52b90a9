// Lists of the stored trades and holdings, of one portfolio or of all.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Alert, Button, Panel } from "@wattle/page";
import { type Column, DataTable } from "@wattle/page/table";
import {
  type Holding,
  listHoldings,
  listOperations,
  type Operation,
  type OperationPage,
  type Portfolio,
  type StoredQuery,
} from "../api.ts";
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
  return <StoredList title="交易记录" read={listOperations} columns={columns} {...props} />;
}

export function HoldingList(props: Props) {
  const columns: Column<Holding>[] = [
    ...security<Holding>(),
    number<Holding>("quantity", "持仓数量", (row) => row.quantity),
    number<Holding>("costPrice", "成本价", (row) => row.costPrice),
    ...booking<Holding>(props.portfolios),
  ];
  return <StoredList title="持仓" read={listHoldings} columns={columns} {...props} />;
}

function number<R>(key: string, header: string, value: (row: R) => number): Column<R> {
  return { key, header, value, align: "end", render: (row) => NUMBERS.format(value(row)) };
}

function security<R extends Pick<Holding, "ticker" | "name">>(): Column<R>[] {
  return [
    { key: "ticker", header: "股票代码", value: (row) => row.ticker },
    { key: "name", header: "股票名称", value: (row) => row.name },
  ];
}

type Booked = Pick<Holding, "currency" | "portfolioId" | "riskCategory">;

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
  read: (query: StoredQuery) => Promise<Page<R>>;
  columns: readonly Column<R>[];
}

/** A page of stored rows, such as an `OperationPage`. */
interface Page<R> extends Omit<OperationPage, "items"> {
  items: R[];
}

function StoredList<R extends { id: number }>(props: ListProps<R>) {
  const { title, read, columns, portfolioId } = props;
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: ["stored", title, portfolioId],
    queryFn: ({ pageParam: before }) => read({ portfolioId, before }),
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
