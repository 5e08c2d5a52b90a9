// A node that is called outside of any run, with what a user enters into a form.
import { Button } from "@wattle/page";
import { durationText } from "../part/amount.ts";
import { JsonTree } from "../part/json-tree.tsx";
import { Section } from "../part/section.tsx";
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import type { Plugin } from "../plugins/read.ts";
import { useAlone } from "./alone.ts";
import { Calls, GrantedFailure, listedCall } from "./calls.tsx";
import { ConfigFields, type GivenConfig, useNodeConfig } from "./config.tsx";
import styles from "./play.module.css";
import type { NodeCall } from "./read.ts";
import { RequestForm } from "./request-form.tsx";
import { NODE, RUN, TEXTS } from "./texts.ts";

/** What a node is called with. */
interface NodeRequest extends GivenConfig {
  input: unknown;
}

interface NodeCallFormProps {
  node: Plugin["nodes"][number];
  /** Reference of the node. */
  reference: string;
  /** Calls the node. */
  onCall: (request: NodeRequest, signal: AbortSignal) => Promise<NodeCall>;
}

/** A form for the input and the configuration of a node, and the end of its newest call. */
export function NodeCallForm({ node, reference, onCall }: NodeCallFormProps) {
  const { attempt, ended, isStopped, stop } = useAlone(onCall);
  const config = useNodeConfig(node.config_schema);
  const call = (input: unknown) => {
    const given = config.read();
    if (given !== undefined) attempt.act({ input, ...given });
  };
  return (
    <>
      <p>
        <Text>{node.doc}</Text>
      </p>
      <p className="w-note">{`${TEXTS.real} ${NODE.note}`}</p>
      <ConfigFields config={config} />
      <RequestForm
        label={TEXTS.node(reference)}
        schema={node.input_schema}
        submit={NODE.call}
        busy={NODE.calling}
        isBusy={attempt.isBusy}
        refusal={attempt.refusal}
        onSubmit={call}
      >
        {attempt.isBusy && (
          <Button kind="danger" onClick={stop}>
            {NODE.stop}
          </Button>
        )}
      </RequestForm>
      <p role="status">{isStopped ? NODE.stopped : ""}</p>
      {ended !== undefined && <End call={ended} />}
    </>
  );
}

/** Returns the status of a call that has ended. */
function statusOf({ failure, interrupts = [] }: NodeCall): string {
  if (failure != null) return "failed";
  return interrupts.length > 0 ? "interrupted" : "completed";
}

function End({ call }: { call: NodeCall }) {
  const { outcome, failure, interrupts = [], duration_us, calls, omitted_calls } = call;
  return (
    <section className={styles.result} aria-label={RUN.result}>
      <div className={styles.head}>
        <Status name={statusOf(call)} />
        <span>{`${RUN.duration}: ${durationText(duration_us)}`}</span>
      </div>
      {failure != null && <GrantedFailure title={NODE.failed} failure={failure} />}
      {interrupts.length > 0 && (
        <Section title={NODE.interrupts} heading="h3">
          <p>{NODE.unanswered}</p>
          <JsonTree label={NODE.interrupts} value={interrupts} />
        </Section>
      )}
      {outcome !== undefined && outcome !== null && (
        <Section title={NODE.outcome} heading="h3">
          <JsonTree label={NODE.outcome} value={outcome} />
        </Section>
      )}
      <Calls calls={calls.map(listedCall)} omitted={omitted_calls} />
      <Logs call={call} />
    </section>
  );
}

/** The log messages of a call, if there are any. */
function Logs({ call: { logs, omitted_logs } }: { call: NodeCall }) {
  if (logs.length === 0) return null;
  return (
    <Section title={NODE.logs} heading="h3">
      <JsonTree label={NODE.logs} value={logs} />
      {omitted_logs > 0 && <p>{NODE.moreLogs(omitted_logs)}</p>}
    </Section>
  );
}
