// Script and recorded calls of a fake host, and the fake host that is entered.

import { Failure, type Result, settled } from "../failure.ts";
import type { Request as HttpRequest, Response as HttpResponse } from "../http.ts";
import type { Question } from "../interrupt.ts";
import type { Extra, Json } from "../json.ts";
import type { Completion, ImageRequest, Request as LlmRequest, RouteInfo } from "../llm/index.ts";
import type { Level } from "../log.ts";
import type { Item } from "../memory.ts";
import type { EndedRun, Resume, RunRef, Start, Thread } from "../runs/index.ts";
import type { Executed, Value } from "../sql/index.ts";
import type { ToolInfo, ToolOutput } from "../tool.ts";
import type { Call } from "../tools.ts";

/** 2026-01-01T00:00:00Z. A test that sets no time gets a plausible date. */
const DEFAULT_NOW_MS = 1_767_225_600_000;

/** A script: what the fake host does with a call. It throws to let the call fail. */
export type Script<A, R> = (asked: A) => R;

/** A generated image of a script. */
export interface Picture {
  /** Media type, such as `image/png`. */
  mediaType: string;
  /** The data. */
  bytes: Uint8Array;
}

/** A recorded log message. */
export interface Logged {
  /** Severity of the message. */
  level: Level;
  /** Text of the message. */
  message: string;
  /** Structured fields. */
  fields: Extra;
}

/** A recorded SQL statement. `BEGIN`, `COMMIT` and `ROLLBACK` are recorded as well. */
export interface Statement {
  /** Name of the database. */
  database: string;
  /** The SQL text. */
  text: string;
  /** Parameters of the statement. */
  parameters: Value[];
  /** True if the statement was executed in a transaction. */
  inTransaction: boolean;
}

/** A document of the memory. */
export interface Kept {
  item: Item;
  expiresMs: number | undefined;
  /** Sliding expiry: lifetime after a read, in milliseconds. */
  refreshMs: number | undefined;
}

/** The state of a fake host. */
export class State {
  llm: Script<LlmRequest, Completion> | undefined;
  images: Script<ImageRequest, Picture[]> | undefined;
  http: Script<HttpRequest, HttpResponse> | undefined;
  sql: Script<Statement, Executed> | undefined;
  runEnds: Script<RunRef, EndedRun> | undefined;
  starts: Script<Start, void> | undefined;
  resumes: Script<Resume, void> | undefined;
  readonly tools: Array<{ info: ToolInfo; script: Script<Json, ToolOutput> }> = [];
  readonly routes = new Map<string, RouteInfo>();
  readonly tenantRoutes = new Map<string, Json>();
  dialect = "sqlite";
  nowMs = DEFAULT_NOW_MS;
  monotonicNs = 0;
  /** Names of time zones and their offsets in seconds. The last one is the operator's time zone. */
  readonly zones: Array<{ name: string; offsetSeconds: number }> = [
    { name: "UTC", offsetSeconds: 0 },
  ];
  random = 0;
  readonly answers: Json[] = [];
  readonly settings: Extra = {};
  readonly blobs = new Map<string, Picture>();
  /** Documents by namespace and key. */
  readonly memory = new Map<string, Kept>();
  readonly threads = new Map<string, Thread>();
  readonly events: Array<{ threadId: string; event: Json }> = [];
  readonly notes: Notes = {
    llm: [],
    images: [],
    tools: [],
    routes: [],
    http: [],
    statements: [],
    questions: [],
    emitted: [],
    progress: [],
    logged: [],
    started: [],
    resumed: [],
    cancelled: [],
  };
}

/** The recorded calls. */
export interface Notes {
  llm: LlmRequest[];
  images: ImageRequest[];
  tools: Call[];
  /** Names and configurations of the routes that were set for the tenant. */
  routes: Array<[route: string, config: Json]>;
  http: HttpRequest[];
  statements: Statement[];
  questions: Question[];
  emitted: Array<[name: string, data: Json]>;
  progress: Array<[message: string, fraction: number | undefined]>;
  logged: Logged[];
  started: Start[];
  resumed: Resume[];
  cancelled: RunRef[];
}

let entered: State | undefined;

/** Runs a function in which the SDK calls this fake host. */
export function enter<T>(state: State, work: () => T): T {
  const outer = entered;
  entered = state;
  try {
    return work();
  } finally {
    entered = outer;
  }
}

/** Returns the state of the fake host that is entered. */
export function current(): State {
  if (entered !== undefined) return entered;
  throw Failure.unsupported(
    "there is no host here: wrap a test in `FakeHost.run`, and call the host from nodes, tools and " +
      "handlers only, not while the plugin is loaded",
  );
}

/** Returns the state of the fake host that is entered, if there is one. */
export function currentOrNone(): State | undefined {
  return entered;
}

/**
 * Runs a script. Without a script, fails with `unsupported` and the name of the method that sets the
 * script.
 */
export function play<A, R>(script: Script<A, R> | undefined, asked: A, method: string): R {
  if (script !== undefined) return script(asked);
  throw Failure.unsupported(`the fake host has no script; set one with \`${method}\``);
}

/** Makes each call, and returns the failures of calls that fail. */
export function each<A, R>(asked: readonly A[], call: (asked: A) => R): Array<Result<R>> {
  return asked.map((one) => settled(() => call(one)));
}
