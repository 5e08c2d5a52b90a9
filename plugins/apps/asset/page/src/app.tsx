// The page: the stored rows, and the dialog that adds rows.
import { Button, SelectField, Shell, takeSuggestion, toast, useConnection } from "@wattle/page";
import { useCallback, useEffect, useState } from "react";
import { AddAssetModal } from "./add/add-asset-modal.tsx";
import { savedThread } from "./add/thread.ts";
import { listPortfolios, type Portfolio } from "./api.ts";
import "./app.css";
import { HoldingList, OperationList } from "./list/stored-list.tsx";

/** Key under which the number of added rows is kept during a reload. */
const STORED_KEY = "wattle-asset-stored";

export function App() {
  const [suggested] = useState(takeSuggestion);
  // A pending review is shown immediately, because it expires after 30 minutes.
  const [isOpen, setOpen] = useState(() => savedThread() !== undefined || suggested !== "");
  const [portfolios, setPortfolios] = useState<readonly Portfolio[]>([]);
  const [filter, setFilter] = useState("");
  const [version, setVersion] = useState(0);
  const again = useCallback(() => setVersion((now) => now + 1), []);
  useConnection(again);
  useEffect(() => {
    void version;
    listPortfolios()
      .then(setPortfolios)
      .catch((error: Error) => toast(error.message, "error"));
  }, [version]);
  useEffect(tellStored, []);
  const portfolioId = filter === "" ? undefined : Number(filter);
  const close = useCallback(() => setOpen(false), []);
  const list = { portfolioId, portfolios, version };
  return (
    <Shell
      title="资产"
      actions={
        <Button kind="primary" onClick={() => setOpen(true)}>
          新增资产
        </Button>
      }
    >
      <div className="a-page">
        <div className="a-filter">
          <SelectField
            label="查看组合"
            value={filter}
            onChange={setFilter}
            options={[
              { value: "", name: "全部组合" },
              ...portfolios.map(({ id, name }) => ({ value: String(id), name })),
            ]}
          />
        </div>
        <OperationList {...list} />
        <HoldingList {...list} />
      </div>
      <AddAssetModal open={isOpen} initial={suggested} onClose={close} onStored={reload} />
    </Shell>
  );
}

/** Reloads the page after a write, as S0-91 requires. */
function reload(count: number): void {
  if (count > 0) sessionStorage.setItem(STORED_KEY, String(count));
  window.location.reload();
}

function tellStored(): void {
  const count = sessionStorage.getItem(STORED_KEY);
  sessionStorage.removeItem(STORED_KEY);
  if (count !== null) toast(`已添加 ${count} 条记录`, "ok");
}
