// Calls of tools that other plugins and MCP servers provide. `tool.ts` has the tools of a plugin.

import * as host from "#host/tools";
import type { Failure, Result } from "./failure.ts";
import { type Extra, type Json, toValue } from "./json.ts";
import type { ToolCall } from "./message.ts";
import type { ToolInfo, ToolOutput } from "./tool.ts";

/** What a call has besides its tool and arguments. */
export interface CallOptions {
  /** Id of the call, by which messages refer to it. Without one, the host generates it. */
  callId?: string;
  /** Timeout of the call in milliseconds; without one, the operator's limit. */
  timeoutMs?: number;
  /**
   * Visible state for the tool, an object of channel values. The tool reads it with
   * {@link ToolContext.state}.
   */
  state?: unknown;
  /** Extension fields. */
  extra?: Extra;
}

/** A tool call. */
export class Call {
  /** Bare name or reference of the tool. */
  readonly tool: string;
  /** Id of the call. If it is empty, the host generates one. */
  readonly callId: string;
  /** The arguments. */
  readonly arguments: Json;
  /** Timeout of the call in milliseconds. */
  readonly timeoutMs: number | undefined;
  /** Extension fields. */
  readonly extra: Extra;

  /** Creates a call. */
  constructor(tool: string, args: unknown = {}, options: CallOptions = {}) {
    const { callId = "", timeoutMs, state, extra = {} } = options;
    const visible: Extra =
      state === undefined ? {} : { state: toValue("the visible state", state) };
    this.tool = tool;
    this.callId = callId;
    this.arguments = toValue(`the arguments of \`${tool}\``, args);
    this.timeoutMs = timeoutMs;
    this.extra = { ...extra, ...visible };
  }

  /** Converts a tool call that a model requests. */
  static of(call: ToolCall): Call {
    return new Call(call.name, call.arguments, { callId: call.id });
  }

  /** Calls the tool and waits for its output. */
  call(): ToolOutput {
    return host.call(this);
  }
}

/**
 * Calls a tool and waits for its output.
 *
 * A tool has a bare name (`add`) and a tool reference (`calculator/add`, `mcp:graph/search`). The
 * reference is needed only if two granted tools have the same bare name. The host checks the arguments
 * against the schema of the tool before it calls the tool. A call fails if the tool traps, exceeds a
 * limit or is not granted. An error that the model should read is an output with
 * {@link ToolOutput.isError}.
 *
 * ```ts
 * import { ToolOutput, tools } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost().tool("add", (args) => ToolOutput.json(args));
 * host.run(() => {
 *   assert.equal(tools.list()[0]?.name, "add");
 *   assert.deepEqual(tools.call("add", { a: 1 }).structured, { a: 1 });
 * });
 * ```
 */
export function call(tool: string, args: unknown = {}, options: CallOptions = {}): ToolOutput {
  return new Call(tool, args, options).call();
}

/**
 * Calls several tools concurrently. Returns the results in the order of the calls.
 *
 * ```ts
 * import { Failure, tools } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const host = new FakeHost().tool("echo", (args) => JSON.stringify(args));
 * host.run(() => {
 *   const results = tools.callAll([new tools.Call("echo", 1), new tools.Call("none", 2)]);
 *   assert.deepEqual(results.map((result) => result instanceof Failure), [false, true]);
 * });
 * ```
 */
export function callAll(calls: readonly Call[]): Array<Result<ToolOutput>> {
  return host.callAll(calls);
}

/** Lists the granted tools. Omits the tools of unavailable sources, which {@link listing} reports. */
export function list(): ToolInfo[] {
  return listing().tools;
}

/** A tool source whose tools could not be listed. */
export interface Missing {
  /** Prefix of the references to its tools, such as `mcp:graph`. */
  source: string;
  /** Reason why the tools could not be listed. */
  failure: Failure;
}

/** The granted tools and the unavailable tool sources. */
export interface Listing {
  /** Tools of the available sources. */
  tools: ToolInfo[];
  /** Tool sources whose tools could not be listed. */
  missing: Missing[];
}

/** Lists the granted tools, and the tool sources whose tools could not be listed. */
export function listing(): Listing {
  const listing: Listing = { tools: [], missing: [] };
  for (const info of host.list()) {
    const missing = info.source();
    if (missing === undefined) listing.tools.push(info);
    else listing.missing.push(missing);
  }
  return listing;
}
