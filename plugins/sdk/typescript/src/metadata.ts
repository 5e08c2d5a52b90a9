// Names and descriptions of types. Those of the SDK are apart from those of apps, because the registry of
// zod refuses a second type with an id, and an app may use the same ids.

import { type $ZodType, globalRegistry } from "zod/v4/core";

/** What JSON Schema has about a type besides its values. */
export interface Metadata {
  /** Name of the schema in OpenAPI documents. */
  id?: string | undefined;
  /** Description of the type. */
  description?: string | undefined;
  [key: string]: unknown;
}

const OWN = new WeakMap<$ZodType, Metadata>();

/** Gives a type of the SDK a name or a description. Returns the type. */
export function withMetadata<T extends $ZodType>(type: T, metadata: Metadata): T {
  OWN.set(type, metadata);
  return type;
}

/** Returns the metadata of a type. */
export function metadataOf(type: $ZodType): Metadata | undefined {
  return OWN.get(type) ?? globalRegistry.get(type);
}
