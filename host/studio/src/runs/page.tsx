// The runs of all threads of the host, newest request first.
import { useAccess } from "../access/access.tsx";
import { isFiltered } from "../part/filters/conditions.ts";
import { None } from "../part/filters/none.tsx";
import styles from "../part/paged-list/paged-list.module.css";
import { PagedList } from "../part/paged-list/paged-list.tsx";
import { runsRoute, useSearchOf } from "../router/links.tsx";
import { useTitle } from "../shell/title.ts";
import { columnsOf } from "./columns.tsx";
import { FILTER, queryOf, type RunsQuery } from "./filter.ts";
import { RunsFilters } from "./filters.tsx";
import { ORDER, useRuns } from "./read.ts";
import { TEXTS } from "./texts.ts";

export default function RunsPage() {
  useTitle(TEXTS.title);
  const filter = useSearchOf(FILTER);
  const query = queryOf(filter, useAccess());
  return (
    <div className={styles.page}>
      <h2 className="w-hidden">{TEXTS.title}</h2>
      <RunsFilters filter={filter} query={query} />
      <Runs key={JSON.stringify(query)} query={query} />
    </div>
  );
}

function Runs({ query }: { query: RunsQuery }) {
  return (
    <PagedList
      list={useRuns(query)}
      order={ORDER}
      columns={columnsOf(query.tenant)}
      texts={TEXTS}
      none={<None isFiltered={isFiltered(query)} texts={TEXTS} cleared={runsRoute()} />}
    />
  );
}
