// A tool that is called outside of any run.
import { JsonTree } from "../part/json-tree.tsx";
import { Section } from "../part/section.tsx";
import { FunctionForm } from "./function-form.tsx";
import type { Tool, ToolCall } from "./read.ts";
import { TEXTS, TOOL } from "./texts.ts";
import { Words } from "./words.tsx";

/** What a tool is called with. */
interface ToolRequest {
  input: unknown;
}

interface ToolFormProps {
  tool: Pick<Tool, "tool" | "description" | "input_schema" | "read_only" | "idempotent">;
  /** Calls the tool. */
  onCall: (request: ToolRequest, signal: AbortSignal) => Promise<ToolCall>;
}

/** A form for the input of a tool, and the end of its newest call. */
export function ToolForm({ tool, onCall }: ToolFormProps) {
  const notes = [
    ...(tool.read_only ? [TOOL.readOnly] : []),
    ...(tool.idempotent ? [TOOL.idempotent] : []),
  ];
  return (
    <FunctionForm
      label={TEXTS.tool(tool.tool)}
      doc={tool.description}
      notes={notes}
      schema={tool.input_schema}
      texts={TOOL}
      requestOf={(input): ToolRequest => ({ input })}
      onCall={onCall}
      outcomeOf={({ output }) => {
        return output === undefined || output === null ? null : <Output output={output} />;
      }}
    />
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
