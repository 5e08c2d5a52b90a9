// A tool that is called outside of any run, with what a user enters into a form.
import { Button } from "@wattle/page";
import { durationText } from "../part/amount.ts";
import { JsonTree } from "../part/json-tree.tsx";
import { Section } from "../part/section.tsx";
import { Status } from "../part/status.tsx";
import { Text } from "../part/text.tsx";
import { useAlone } from "./alone.ts";
import { Calls, GrantedFailure, listedCall } from "./calls.tsx";
import styles from "./play.module.css";
import type { Tool, ToolCall } from "./read.ts";
import { RequestForm } from "./request-form.tsx";
import { RUN, TEXTS, TOOL } from "./texts.ts";
import { Words } from "./words.tsx";

interface ToolFormProps {
  tool: Pick<Tool, "tool" | "description" | "input_schema" | "read_only" | "idempotent">;
  /** Calls the tool. */
  onCall: (input: unknown, signal: AbortSignal) => Promise<ToolCall>;
}

/** A form for the input of a tool, and the end of its newest call. */
export function ToolForm({ tool, onCall }: ToolFormProps) {
  const { attempt, ended, isStopped, stop } = useAlone(onCall);
  return (
    <>
      <p>
        <Text>{tool.description}</Text>
      </p>
      <p className="w-note">
        {[
          TEXTS.real,
          ...(tool.read_only ? [TOOL.readOnly] : []),
          ...(tool.idempotent ? [TOOL.idempotent] : []),
        ].join(" ")}
      </p>
      <RequestForm
        label={TEXTS.tool(tool.tool)}
        schema={tool.input_schema}
        submit={TOOL.call}
        busy={TOOL.calling}
        isBusy={attempt.isBusy}
        refusal={attempt.refusal}
        onSubmit={attempt.act}
      >
        {attempt.isBusy && (
          <Button kind="danger" onClick={stop}>
            {TOOL.stop}
          </Button>
        )}
      </RequestForm>
      <p role="status">{isStopped ? TOOL.stopped : ""}</p>
      {ended !== undefined && <End call={ended} />}
    </>
  );
}

function End({ call }: { call: ToolCall }) {
  const { output, failure, duration_us, calls, omitted_calls } = call;
  return (
    <section className={styles.result} aria-label={RUN.result}>
      <div className={styles.head}>
        <Status name={failure == null ? "completed" : "failed"} />
        <span>{`${RUN.duration}: ${durationText(duration_us)}`}</span>
      </div>
      {failure != null && <GrantedFailure title={TOOL.failed} failure={failure} />}
      {output !== undefined && output !== null && <Output output={output} />}
      <Calls calls={calls.map(listedCall)} omitted={omitted_calls} />
    </section>
  );
}

/** The output of a tool: what models read of it, and the rest as data. */
function Output({ output }: { output: unknown }) {
  const fields: Partial<Record<"content" | "structured" | "is_error" | "updates", unknown>> =
    Object(output);
  const { content, structured, is_error, updates } = fields;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [];
  const isEmpty = parts.length === 0 && structured === undefined && updates === undefined;
  return (
    <Section title={TOOL.output} heading="h3">
      {is_error === true && <p>{TOOL.isError}</p>}
      {isEmpty && <p>{TOOL.empty}</p>}
      {parts.map((part, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one output do not change.
        <Part key={index} part={part} />
      ))}
      {structured !== undefined && <JsonTree label={TOOL.data} value={structured} />}
      {updates !== undefined && (
        <Section title={TOOL.updates}>
          <JsonTree label={TOOL.updates} value={updates} />
        </Section>
      )}
    </Section>
  );
}

function Part({ part }: { part: unknown }) {
  const { text }: { text?: unknown } = Object(part);
  if (typeof text !== "string") return <JsonTree label={TOOL.output} value={part} />;
  return <Words label={TOOL.text} text={text} />;
}
