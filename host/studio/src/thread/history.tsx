// The checkpoints of a thread's root graph, newest first.
import { Button, Panel } from "@wattle/page";
import { usePagedList } from "../api/pages.ts";
import { Text } from "../part/text.tsx";
import { Time } from "../part/time.tsx";
import { checkpointRoute, RouteLink } from "../router/links.tsx";
import { Failure } from "../shell/failure.tsx";
import { NEWEST, readHistory } from "../state/read.ts";
import { TEXTS as STATE } from "../state/texts.ts";
import { TEXTS } from "./texts.ts";
import styles from "./thread.module.css";

/** Interval at which a visible tab reads the newest checkpoints, in milliseconds. */
const INTERVAL_MS = 5_000;

interface HistoryProps {
  thread: string;
  tenant: string | undefined;
}

export function History({ thread, tenant }: HistoryProps) {
  const { rows, isComplete, error, retry, more } = usePagedList(
    ["history", thread, tenant, ""],
    NEWEST,
    (cursor) => readHistory({ thread, tenant, namespace: "" }, undefined, cursor),
    INTERVAL_MS,
  );
  return (
    <Panel title={TEXTS.history}>
      {error !== null && <Failure error={error} onRetry={retry} />}
      {rows?.length === 0 && <p>{TEXTS.noHistory}</p>}
      <ul className={styles.items} aria-label={TEXTS.historyList}>
        {rows?.map(({ id, source, step, changed, at_ms }) => (
          <li key={id}>
            <RouteLink to={checkpointRoute({ thread, tenant }, id)}>
              {STATE.title(`${id}`)}
            </RouteLink>
            <span>{STATE.step(source, step)}</span>
            <Time ms={at_ms} />
            {changed.length > 0 && <Text>{TEXTS.wrote(changed.join(", "))}</Text>}
          </li>
        ))}
      </ul>
      {!isComplete && rows !== undefined && rows.length > 0 && (
        <Button onClick={more}>{TEXTS.moreHistory}</Button>
      )}
    </Panel>
  );
}
