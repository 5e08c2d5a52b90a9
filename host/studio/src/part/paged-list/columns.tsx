// The columns that several lists have.
import { Status } from "../status.tsx";
import { Text } from "../text.tsx";
import type { Column } from "../virtual-list.tsx";
import styles from "./paged-list.module.css";
import { TEXTS } from "./texts.ts";

/** What the columns show of a thread or a run. */
interface Listed {
  tenant?: string | null;
  status: string;
  failure?: { code: string; message: string } | null;
  app: string;
  graph: string;
}

export const TENANT: Column<Listed> = {
  key: "tenant",
  header: TEXTS.tenant,
  className: styles.tenant,
  render: ({ tenant }) => tenant != null && <Text>{tenant}</Text>,
};

export const STATUS: Column<Listed> = {
  key: "status",
  header: TEXTS.status,
  className: styles.status,
  render: ({ status, failure }) => (
    <>
      <Status name={status} /> {failure != null && <Text>{failure.code}</Text>}
    </>
  ),
};

export const GRAPH: Column<Listed> = {
  key: "graph",
  header: TEXTS.appAndGraph,
  className: styles.wide,
  render: ({ app, graph }) => <Text>{`${app} / ${graph}`}</Text>,
};

export const FAILURE: Column<Listed> = {
  key: "failure",
  header: TEXTS.failure,
  className: styles.extra,
  render: ({ failure }) => failure != null && <Text>{failure.message}</Text>,
};
