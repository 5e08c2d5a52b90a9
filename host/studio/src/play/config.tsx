// The configuration with which the playground calls a node.
import { type EnteredValue, useEnteredValue, ValueFields } from "./entered-value.tsx";
import { NODE } from "./texts.ts";

/** The configuration of a call; absent if the node takes none. */
export interface GivenConfig {
  config?: unknown;
}

/** What is entered as the configuration. */
interface NodeConfig {
  value: EnteredValue;
  /** True if the node takes a configuration. */
  isTaken: boolean;
  /** Returns the configuration; `undefined` if it has a problem, which is shown then. */
  read: () => GivenConfig | undefined;
}

/** Returns what is entered as the configuration of a node. A node without a schema takes none. */
export function useNodeConfig(schema: unknown): NodeConfig {
  const isTaken = schema !== undefined && schema !== null;
  const value = useEnteredValue(schema, NODE.config);
  const read = () => {
    if (!isTaken) return {};
    const found = value.read();
    return found && { config: found[0] };
  };
  return { value, isTaken, read };
}

/** The fields of the configuration, if the node takes one. */
export function ConfigFields({ config: { value, isTaken } }: { config: NodeConfig }) {
  return isTaken ? <ValueFields value={value} isGiven /> : null;
}
