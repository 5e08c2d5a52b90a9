// The runs of a thread, newest first.
import { Button, Panel } from "@wattle/page";
import { costText } from "../part/amount.ts";
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import { Time } from "../part/time.tsx";
import { RouteLink, runRoute } from "../router/links.tsx";
import { Failure } from "../shell/failure.tsx";
import { useRunsOf } from "./read.ts";
import { TEXTS } from "./texts.ts";
import styles from "./thread.module.css";

interface RunsProps {
  thread: string;
  tenant: string | undefined;
}

export function Runs({ thread, tenant }: RunsProps) {
  const { rows, isComplete, error, retry, more } = useRunsOf({ thread, tenant });
  return (
    <Panel title={TEXTS.runs}>
      {error !== null && <Failure error={error} onRetry={retry} />}
      {rows?.length === 0 && <p>{TEXTS.noRuns}</p>}
      <ul className={styles.items} aria-label={TEXTS.runsList}>
        {rows?.map((run) => (
          <li key={run.run}>
            <RouteLink to={runRoute({ thread, run: run.run, tenant })}>
              <Text>{run.run}</Text>
            </RouteLink>
            <Status name={run.status} />
            {run.created_ms != null && <Time ms={run.created_ms} />}
            {run.failure != null && <Text>{run.failure.code}</Text>}
            {run.cost != null && <span>{TEXTS.cost(costText(run.cost))}</span>}
          </li>
        ))}
      </ul>
      {!isComplete && rows !== undefined && <Button onClick={more}>{TEXTS.moreRuns}</Button>}
    </Panel>
  );
}
