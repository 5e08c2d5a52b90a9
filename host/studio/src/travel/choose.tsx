// The choice of a run with which another one is compared: by its id, or from a list.
import { Button, Segments, TextField } from "@wattle/page";
import { type FormEvent, useMemo, useState } from "react";
import { given } from "../api/given.ts";
import type { RunPlace } from "../api/log.ts";
import { isMissing } from "../api/missing.ts";
import type { List, Order } from "../api/pages.ts";
import { readRunDocument } from "../api/run.ts";
import { useQuietThread } from "../api/thread.ts";
import { Refusal, useAttempt } from "../part/attempt.tsx";
import widths from "../part/paged-list/paged-list.module.css";
import { PagedList } from "../part/paged-list/paged-list.tsx";
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import { Time } from "../part/time.tsx";
import type { Column } from "../part/virtual-list.tsx";
import {
  chooseRunRoute,
  compareRoute,
  LISTED_RUNS,
  RouteLink,
  runRoute,
  useGo,
  useGoLater,
  useSearchOf,
} from "../router/links.tsx";
import { name, oneOf } from "../router/search.ts";
import { ORDER, useRuns } from "../runs/read.ts";
import { Reading } from "../shell/failure.tsx";
import { ORDER as THREAD_ORDER, useRunsOf } from "../thread/read.ts";
import { CHOOSE, COMPARE } from "./texts.ts";
import styles from "./travel.module.css";

/** The search parameter of the view: whose runs are listed. */
const SEARCH = { of: oneOf(LISTED_RUNS) };

/** What the lists show of a run. */
interface Listed {
  run: string;
  thread: string;
  status: string;
  created_ms?: number | null;
  failure?: { code: string } | null;
}

interface PartProps {
  /** The run for which another one is chosen. */
  place: RunPlace;
}

export function ChooseRun({ place }: PartProps) {
  const { of = "thread" } = useSearchOf(SEARCH);
  const go = useGo();
  return (
    <div className={styles.compare}>
      <h2>{COMPARE.title}</h2>
      <p>
        <RouteLink to={runRoute(place)}>
          <Text>{COMPARE.run(place.run)}</Text>
        </RouteLink>
      </p>
      <p>{CHOOSE.note}</p>
      <ById place={place} />
      <Segments
        label={CHOOSE.lists}
        options={[
          { value: "thread", name: CHOOSE.ofThread },
          { value: "graph", name: CHOOSE.ofGraph },
        ]}
        value={of}
        onChange={(value) => go(chooseRunRoute(place, value), { replace: true })}
      />
      {of === "thread" ? <OfThread place={place} /> : <OfGraph place={place} />}
    </div>
  );
}

/** A form for the id of a run. The host knows its thread. */
function ById({ place }: PartProps) {
  const goLater = useGoLater();
  const [id, setId] = useState("");
  const [problem, setProblem] = useState<string>();
  const { tenant } = place;
  const finding = useAttempt(async (run: string) => {
    const go = goLater();
    const { thread } = await readRunDocument({ run, tenant });
    go(compareRoute(place, { thread, run, tenant }));
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const run = id.trim();
    const found = problemOf(run, place);
    setProblem(found);
    if (found === undefined) finding.act(run);
  };
  return (
    <form className={styles.choose} noValidate onSubmit={submit}>
      <TextField
        label={CHOOSE.id}
        error={problem}
        value={id}
        onChange={setId}
        autoComplete="off"
        spellCheck={false}
      />
      <Button type="submit" kind="primary" busy={finding.isBusy}>
        {finding.isBusy ? CHOOSE.finding : CHOOSE.compare}
      </Button>
      <Refusal
        error={finding.refusal}
        textOf={isMissing(finding.refusal) ? () => CHOOSE.noRun : undefined}
      />
    </form>
  );
}

/** Returns why a run is not compared with the one of this id. */
function problemOf(id: string, { run }: RunPlace): string | undefined {
  if (name(id) === undefined) return CHOOSE.missing;
  return id === run ? CHOOSE.itself : undefined;
}

function OfThread({ place }: PartProps) {
  return <Others place={place} list={useRunsOf(place)} order={THREAD_ORDER} />;
}

function OfGraph({ place }: PartProps) {
  const read = useQuietThread(place);
  const { data } = read;
  if (data === undefined) return <Reading of={read} notFound={COMPARE.notFound} />;
  return <OfGraphNamed place={place} app={data.app} graph={data.graph} />;
}

/** The runs of all threads of a graph. Both runs of a comparison belong to one tenant. */
function OfGraphNamed({ place, app, graph }: PartProps & { app: string; graph: string }) {
  const query = given({ app, graph, tenant: place.tenant });
  return <Others place={place} list={useRuns(query)} order={ORDER} />;
}

interface OthersProps<R extends Listed> extends PartProps {
  list: List<R>;
  order: Order<R>;
}

/** The runs of a list, without the one for which another one is chosen. */
function Others<R extends Listed>({ place, list, order }: OthersProps<R>) {
  const { rows } = list;
  const { run: own } = place;
  const others = useMemo(() => rows?.filter(({ run }) => run !== own), [rows, own]);
  return (
    <PagedList
      list={{ ...list, rows: others }}
      order={order}
      columns={columnsOf(place)}
      texts={CHOOSE}
      none={<p>{CHOOSE.none}</p>}
    />
  );
}

function columnsOf(place: RunPlace): readonly Column<Listed>[] {
  const { tenant } = place;
  return [
    {
      key: "run",
      header: CHOOSE.run,
      render: ({ thread, run }) => (
        <RouteLink to={compareRoute(place, { thread, run, tenant })}>
          <Text>{run}</Text>
        </RouteLink>
      ),
    },
    {
      key: "thread",
      header: CHOOSE.thread,
      className: widths.wide,
      render: ({ thread }) => <Text>{thread}</Text>,
    },
    {
      key: "status",
      header: CHOOSE.status,
      className: widths.status,
      render: ({ status, failure }) => (
        <>
          <Status name={status} /> {failure != null && <Text>{failure.code}</Text>}
        </>
      ),
    },
    {
      key: "requested",
      header: CHOOSE.requested,
      className: widths.time,
      render: ({ created_ms }) => created_ms != null && <Time ms={created_ms} />,
    },
  ];
}
