// What a graph takes: a schema of its input, and the channel of its conversation.
import { channelsOf } from "../graph/definition.ts";

/** The reducer of a channel with a conversation. */
const MESSAGES = "messages";

/** Returns a schema for the input of a graph: an object of values for its channels. */
export function inputSchema(definition: unknown): unknown {
  const properties = channelsOf(definition).map(({ name, doc, schema }) => {
    const known = typeof schema === "object" && schema !== null ? schema : {};
    return [name, doc === "" ? known : { description: doc, ...known }];
  });
  return { type: "object", properties: Object.fromEntries(properties) };
}

/**
 * Returns the channel with the conversation of a graph, as the host finds it for AG-UI: the only
 * one with the reducer `messages`, or of several the one with this name.
 */
export function messageChannel(definition: unknown): string | undefined {
  const channels = channelsOf(definition).filter(({ reducer }) => reducer === MESSAGES);
  const named = channels.find(({ name }) => name === MESSAGES);
  return channels.length === 1 ? channels[0]?.name : named?.name;
}

/** Returns a schema with this title, unless it has one of its own. */
export function titled(schema: unknown, title: string): unknown {
  if (schema === undefined || schema === null || schema === true) return { title };
  if (typeof schema !== "object") return schema;
  return { title, ...schema };
}
