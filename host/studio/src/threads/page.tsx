// The list of threads of the host, newest update first.
import { useAccess } from "../access/access.tsx";
import { isFiltered } from "../part/filters/conditions.ts";
import { None } from "../part/filters/none.tsx";
import styles from "../part/paged-list/paged-list.module.css";
import { PagedList } from "../part/paged-list/paged-list.tsx";
import { threadsRoute, useSearchOf } from "../router/links.tsx";
import { useTitle } from "../shell/title.ts";
import { columnsOf } from "./columns.tsx";
import { FILTER, queryOf, type ThreadQuery } from "./filter.ts";
import { ThreadFilters } from "./filters.tsx";
import { ORDER, useThreads } from "./read.ts";
import { TEXTS } from "./texts.ts";

export function ThreadsPage() {
  useTitle(TEXTS.title);
  const filter = useSearchOf(FILTER);
  const query = queryOf(filter, useAccess());
  return (
    <div className={styles.page}>
      <h2 className="w-hidden">{TEXTS.title}</h2>
      <ThreadFilters filter={filter} query={query} />
      <Threads key={JSON.stringify(query)} query={query} />
    </div>
  );
}

function Threads({ query }: { query: ThreadQuery }) {
  return (
    <PagedList
      list={useThreads(query)}
      order={ORDER}
      columns={columnsOf(query.tenant)}
      texts={TEXTS}
      none={<None isFiltered={isFiltered(query)} texts={TEXTS} cleared={threadsRoute()} />}
    />
  );
}
