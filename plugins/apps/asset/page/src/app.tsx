// The page: the stored rows, and the dialog that adds rows.
import { useQuery } from "@tanstack/react-query";
import { Button, SelectField, Shell, takeSuggestion, toast } from "@wattle/page";
import { useEffect, useState } from "react";
import { AddAssetModal } from "./add/add-asset-modal.tsx";
import { savedThread } from "./add/thread.ts";
import styles from "./app.module.css";
import { PORTFOLIOS } from "./confirm/portfolio-field.tsx";
import { HoldingList, OperationList } from "./list/stored-list.tsx";

/** Key under which the number of added rows is kept during a reload. */
const STORED_KEY = "wattle-asset-stored";

export function App() {
  const [suggested] = useState(takeSuggestion);
  // A pending review is shown immediately, because it expires after 30 minutes.
  const [isOpen, setOpen] = useState(() => savedThread() !== undefined || suggested !== "");
  const [filter, setFilter] = useState("");
  const { data: portfolios = [], error } = useQuery(PORTFOLIOS);
  useEffect(tellStored, []);
  const list = { portfolioId: filter === "" ? undefined : Number(filter), portfolios };
  return (
    <Shell
      title="资产"
      actions={
        <Button kind="primary" onClick={() => setOpen(true)}>
          新增资产
        </Button>
      }
    >
      <div className={styles.page}>
        <div className={styles.filter}>
          <SelectField
            label="查看组合"
            value={filter}
            onChange={setFilter}
            error={error?.message}
            options={[
              { value: "", name: "全部组合" },
              ...portfolios.map(({ id, name }) => ({ value: String(id), name })),
            ]}
          />
        </div>
        <OperationList {...list} />
        <HoldingList {...list} />
      </div>
      <AddAssetModal
        open={isOpen}
        initial={suggested}
        onClose={() => setOpen(false)}
        onStored={reload}
      />
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
