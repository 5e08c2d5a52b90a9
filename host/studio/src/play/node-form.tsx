// A node that is called outside of any run.
import { JsonTree } from "../part/json-tree.tsx";
import { Section } from "../part/section.tsx";
import type { Plugin } from "../plugins/read.ts";
import { ConfigFields, type GivenConfig, useNodeConfig } from "./config.tsx";
import { FunctionForm } from "./function-form.tsx";
import type { NodeCall } from "./read.ts";
import { NODE, TEXTS } from "./texts.ts";

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
  const config = useNodeConfig(node.config_schema);
  return (
    <FunctionForm
      label={TEXTS.node(reference)}
      doc={node.doc}
      notes={[NODE.note]}
      schema={node.input_schema}
      texts={NODE}
      requestOf={(input): NodeRequest | undefined => {
        const given = config.read();
        return given && { input, ...given };
      }}
      onCall={onCall}
      outcomeOf={(call) => <Outcome call={call} />}
      logsOf={(call) => <Logs call={call} />}
    >
      <ConfigFields config={config} />
    </FunctionForm>
  );
}

/** The interrupts and the outcome of a call. */
function Outcome({ call: { outcome, interrupts = [] } }: { call: NodeCall }) {
  return (
    <>
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
    </>
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
