// The operation of the host: what it did, what it does next, and what it takes.
import type { ComponentType } from "react";
import { useAccess } from "../access/access.tsx";
import { operationsRoute, RouteLink, useSearchOf } from "../router/links.tsx";
import { useTitle } from "../shell/title.ts";
import { Crons } from "./crons.tsx";
import { FILTER, type OperationsFilter, type PartId, partsOf, withPart } from "./filter.ts";
import { Hosts } from "./hosts.tsx";
import { Keys } from "./keys.tsx";
import { Limits } from "./limits.tsx";
import styles from "./operations.module.css";
import { Queue } from "./queue.tsx";
import { Statistics } from "./statistics.tsx";
import { Store } from "./store.tsx";
import { TEXTS } from "./texts.ts";
import { Webhooks } from "./webhooks.tsx";

const CONTENTS: Record<PartId, ComponentType<{ filter: OperationsFilter }>> = {
  statistics: Statistics,
  limits: Limits,
  hosts: Hosts,
  queue: Queue,
  crons: Crons,
  webhooks: Webhooks,
  keys: Keys,
  store: Store,
};

export default function OperationsPage() {
  useTitle(TEXTS.title);
  const filter = useSearchOf(FILTER);
  const parts = partsOf(useAccess());
  const part = parts.find(({ id }) => id === filter.part) ?? parts[0];
  if (part === undefined) return <p className={styles.page}>{TEXTS.nothing}</p>;
  const Content = CONTENTS[part.id];
  return (
    <div className={styles.page}>
      <h2 className="w-hidden">{TEXTS.title}</h2>
      <nav className={styles.parts} aria-label={TEXTS.parts}>
        {parts.map(({ id }) => (
          <RouteLink
            key={id}
            to={operationsRoute(withPart(filter, id))}
            aria-current={id === part.id ? "page" : undefined}
          >
            {TEXTS.partNames[id]}
          </RouteLink>
        ))}
      </nav>
      <section className={styles.part} aria-label={TEXTS.partNames[part.id]}>
        <h3>{TEXTS.partNames[part.id]}</h3>
        <Content key={part.id} filter={filter} />
      </section>
    </div>
  );
}
