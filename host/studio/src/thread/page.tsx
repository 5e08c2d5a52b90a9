// A thread: its facts, metadata and state, its runs and checkpoints, and its log.
import { Alert, Panel } from "@wattle/page";
import { isMissing } from "../api/missing.ts";
import { type Thread, useThread } from "../api/thread.ts";
import { Blobs } from "../part/blob/blob.tsx";
import { digestText } from "../part/digest.ts";
import { type Fact, Facts, textFact, timeFact } from "../part/facts.tsx";
import { JsonTree } from "../part/json-tree.tsx";
import { Panels } from "../part/panels.tsx";
import { StatedFailure } from "../part/stated-failure.tsx";
import { Status } from "../part/status.tsx";
import { Text, visible } from "../part/text.tsx";
import { RouteLink, threadsRoute, useParam, useSearchOf } from "../router/links.tsx";
import { name } from "../router/search.ts";
import { Reading } from "../shell/failure.tsx";
import { useTitle } from "../shell/title.ts";
import { ThreadControl } from "../travel/control.tsx";
import { EditButton } from "../travel/edit-button.tsx";
import { PendingCalls } from "../travel/settle.tsx";
import { History } from "./history.tsx";
import { Log } from "./log.tsx";
import { Runs } from "./runs.tsx";
import { TEXTS } from "./texts.ts";

/** The search parameters of the view. */
const SEARCH = { tenant: name };

/** The checkpoint whose state the view shows, and the namespace of its graph. */
const LATEST = "latest";
const ROOT = "";

export default function ThreadPage() {
  const thread = useParam("thread");
  const { tenant } = useSearchOf(SEARCH);
  useTitle(TEXTS.title(visible(thread)));
  const read = useThread({ thread, tenant });
  const { data, error } = read;
  return (
    <Panels>
      <p>
        <RouteLink to={threadsRoute()}>{TEXTS.back}</RouteLink>
      </p>
      <h2>
        <Text>{thread}</Text>
      </h2>
      <Reading of={read} notFound={TEXTS.notFound} text={TEXTS.reading} />
      {data !== undefined && !isMissing(error) && (
        <Parts key={JSON.stringify([thread, tenant])} thread={data} tenant={tenant} />
      )}
    </Panels>
  );
}

function Parts({ thread, tenant }: { thread: Thread; tenant: string | undefined }) {
  const { failure, set_aside, metadata, state, status, thread: id } = thread;
  // The host refuses edits of a thread that runs, and of one whose state it cannot read.
  const canEdit = status !== "running" && set_aside == null;
  return (
    <>
      {failure != null && <StatedFailure title={TEXTS.failure} failure={failure} />}
      {set_aside != null && (
        <Alert kind="warning">
          {TEXTS.setAside}: {visible(set_aside.failure.message)}
        </Alert>
      )}
      <ThreadControl thread={thread} tenant={tenant} />
      <PendingCalls thread={thread} tenant={tenant} />
      <Panel title={TEXTS.facts}>
        <Facts facts={factsOf(thread)} />
      </Panel>
      <Panel title={TEXTS.metadata}>
        <JsonTree label={TEXTS.metadata} value={metadata} />
      </Panel>
      <Panel title={TEXTS.state}>
        <JsonTree label={TEXTS.state} value={state} />
        <Blobs thread={id} tenant={tenant} value={state} />
        {canEdit && (
          <EditButton
            place={{ thread: id, tenant, namespace: ROOT }}
            checkpoint={LATEST}
            onEdited={() => undefined}
          />
        )}
      </Panel>
      <Runs thread={id} tenant={tenant} />
      <History thread={id} tenant={tenant} />
      <Log thread={id} tenant={tenant} />
    </>
  );
}

function factsOf(thread: Thread): Fact[] {
  const { status, app, graph, version, run, created_ms, updated_ms, expires_ms } = thread;
  const { next, interrupts } = thread;
  return [
    [TEXTS.status, <Status key="status" name={status} />],
    [TEXTS.app, <Text key="app">{app}</Text>],
    [TEXTS.graph, <Text key="graph">{graph}</Text>],
    [TEXTS.version, digestText(version)],
    [TEXTS.run, textFact(run)],
    [TEXTS.created, timeFact(created_ms)],
    [TEXTS.updated, timeFact(updated_ms)],
    [TEXTS.expires, timeFact(expires_ms)],
    [TEXTS.next, textFact(next.join(", "))],
    [TEXTS.interrupts, interrupts.length === 0 ? undefined : interrupts.length],
  ];
}
