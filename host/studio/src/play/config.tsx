// The configuration with which the playground calls a node.
import { type RefObject, useMemo, useRef } from "react";
import { draftOf } from "../part/schema-form/draft.ts";
import { type Field, fieldOf } from "../part/schema-form/field.ts";
import { SchemaForm } from "../part/schema-form/form.tsx";
import { type Entered, Problems, useEntered } from "../part/schema-form/use-entered.tsx";
import { titled } from "./input.ts";
import styles from "./play.module.css";
import { NODE } from "./texts.ts";

/** The configuration of a call; absent if the node takes none. */
export interface GivenConfig {
  config?: unknown;
}

/** What is entered as the configuration. */
interface NodeConfig {
  box: RefObject<HTMLDivElement | null>;
  field: Field;
  entered: Entered;
  /** True if the node takes a configuration. */
  isTaken: boolean;
  /** Returns the configuration; `undefined` if it has a problem, which is shown then. */
  read: () => GivenConfig | undefined;
}

/** Returns what is entered as the configuration of a node. A node without a schema takes none. */
export function useNodeConfig(schema: unknown): NodeConfig {
  const box = useRef<HTMLDivElement>(null);
  const isTaken = schema !== undefined && schema !== null;
  const field = useMemo(() => fieldOf(titled(schema, NODE.config)), [schema]);
  const entered = useEntered(field, () => draftOf(field), box);
  const read = () => {
    if (!isTaken) return {};
    const found: GivenConfig[] = [];
    entered.submit(entered.draft, (config) => found.push({ config }));
    return found[0];
  };
  return { box, field, entered, isTaken, read };
}

/** The fields of the configuration, if the node takes one. */
export function ConfigFields({ config }: { config: NodeConfig }) {
  const { box, field, entered, isTaken } = config;
  const { draft, errors, change } = entered;
  if (!isTaken) return null;
  return (
    <div ref={box} className={styles.part}>
      <SchemaForm field={field} draft={draft} onDraft={change} errors={errors} />
      <Problems errors={errors} />
    </div>
  );
}
