// Model routes.

import * as host from "#host/llm";
import type { Extra } from "../json.ts";

/** The fields of a {@link RouteInfo}. */
export interface RouteInfoFields {
  /** Provider of the first candidate. */
  provider: string;
  /** Model of the first candidate. */
  model: string;
  /** True if the route has a fallback. */
  hasFallback: boolean;
  /** Extension fields. */
  extra: Extra;
}

/** The models of a route, without their keys and URLs. */
export class RouteInfo implements RouteInfoFields {
  readonly provider: string;
  readonly model: string;
  readonly hasFallback: boolean;
  readonly extra: Extra;

  /** Creates the description of a route, for tests. */
  constructor(fields: Partial<RouteInfoFields> = {}) {
    this.provider = fields.provider ?? "";
    this.model = fields.model ?? "";
    this.hasFallback = fields.hasFallback ?? false;
    this.extra = fields.extra ?? {};
  }

  /** Returns the number of candidates, at least 1. */
  candidates(): number {
    const { candidates } = this.extra;
    return typeof candidates === "number" ? candidates : this.hasFallback ? 2 : 1;
  }
}

/**
 * Returns the models of a granted route, for the tenant of the call.
 *
 * ```ts
 * import { llm } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost().route("chat", { model: "gpt-4o-mini" });
 * host.run(() => {
 *   assert.equal(llm.route("chat").model, "gpt-4o-mini");
 *   assert.throws(() => llm.route("vision"));
 * });
 * ```
 */
export function route(name: string): RouteInfo {
  return host.route(name);
}
