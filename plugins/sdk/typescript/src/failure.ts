// Failures: the error type of guests and of all imports.

import type { Json } from "./json.ts";
import { framesOf, placeOf } from "./stack.ts";

/** Codes that the host uses. A guest can also use its own codes. */
export const code = {
  /** The operator did not grant the call; the message names the line to add to the configuration. */
  DENIED: "denied",
  /** This host does not support the call. */
  UNSUPPORTED: "unsupported",
  /** The request or an argument is invalid. */
  INVALID: "invalid",
  /** A limit was reached. */
  LIMIT: "limit",
  /** The timeout expired. */
  TIMEOUT: "timeout",
  /** A service cannot be reached, or reports an internal error. */
  UNAVAILABLE: "unavailable",
  /** A service rejects the request because of its rate limit. */
  RATE_LIMITED: "rate-limited",
  /** The requested item does not exist. */
  NOT_FOUND: "not-found",
  /** The request conflicts with the current state. */
  CONFLICT: "conflict",
  /** The requested item has expired. */
  EXPIRED: "expired",
  /** Another operation is active; the request can be retried later. */
  BUSY: "busy",
  /** The operation was cancelled. */
  CANCELLED: "cancelled",
  /** A defect of the plugin or of the host. */
  INTERNAL: "internal",
} as const;

/**
 * Key in {@link Failure.details} that contains the HTTP status of a web handler's response. `status`
 * is the one of a model's provider.
 */
const STATUS = "http_status";

/** Maximum number of frames of a stack in the details of a failure. */
const STACK_FRAMES = 30;

/** What a failure has besides its code and message. */
export interface FailureOptions {
  /** True if the same call can succeed later. The host retries a node only after such a failure. */
  retryable?: boolean | undefined;
  /** Structured details. */
  details?: Json | undefined;
  /** The error that led to this failure. It is not sent to the host. */
  cause?: unknown;
}

/**
 * The error of a guest or of a host call. Nodes, tools, reducers and handlers throw it, and so do all
 * functions of this package.
 *
 * ```ts
 * import { Failure, code } from "wattle-plugin";
 *
 * const failure = new Failure("no-rate", "there is no rate for `XYZ`; use a known currency");
 * assert.equal(failure.retryable, false);
 *
 * const busy = new Failure(code.BUSY, "the book is closed until 08:00", { retryable: true });
 * assert.ok(busy.retryable);
 * ```
 */
export class Failure extends Error {
  /** A short stable machine-readable identifier, see {@link code}. */
  readonly code: string;
  /** True if the same call can succeed later. The host retries a node only after such a failure. */
  readonly retryable: boolean;
  /** Structured details. */
  readonly details: Json | undefined;

  /** Creates a failure, which is not retried unless the options say so. */
  constructor(code: string, message: string, options: FailureOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "Failure";
    this.code = code;
    this.retryable = options.retryable ?? false;
    this.details = options.details;
  }

  /** Creates a failure with the code `invalid`. */
  static invalid(message: string, options?: FailureOptions): Failure {
    return new Failure(code.INVALID, message, options);
  }

  /** Creates a failure with the code `not-found`. */
  static notFound(message: string, options?: FailureOptions): Failure {
    return new Failure(code.NOT_FOUND, message, options);
  }

  /** Creates a failure with the code `conflict`. */
  static conflict(message: string, options?: FailureOptions): Failure {
    return new Failure(code.CONFLICT, message, options);
  }

  /** Creates a failure with the code `unsupported`. */
  static unsupported(message: string, options?: FailureOptions): Failure {
    return new Failure(code.UNSUPPORTED, message, options);
  }

  /** Creates a retryable failure with the code `unavailable`. */
  static unavailable(message: string, options?: FailureOptions): Failure {
    return new Failure(code.UNAVAILABLE, message, { retryable: true, ...options });
  }

  /** Creates a retryable failure with the code `timeout`. */
  static timeout(message: string, options?: FailureOptions): Failure {
    return new Failure(code.TIMEOUT, message, { retryable: true, ...options });
  }

  /** Creates a failure with the code `internal`, for a defect of the plugin. */
  static internal(message: string, options?: FailureOptions): Failure {
    return new Failure(code.INTERNAL, message, options);
  }

  /**
   * Converts anything that was thrown. An exception that is no failure is a defect of the plugin: it
   * becomes `internal`, and the details contain its class as `exception` and its `stack` as a list of
   * frames. In a component, the frames name files and lines of the plugin, and the message ends with
   * the first of them.
   *
   * ```ts
   * import { Failure } from "wattle-plugin";
   *
   * const failure = Failure.from(new TypeError("x is undefined"));
   * assert.equal(failure.code, "internal");
   * assert.equal(failure.message, "TypeError: x is undefined");
   * ```
   */
  static from(error: unknown): Failure {
    if (error instanceof Failure) return error;
    if (!isError(error)) return Failure.internal(`threw ${describe(error)}`);
    const { name, message, stack = "" } = error;
    const details = { exception: name, stack: framesOf(stack).slice(0, STACK_FRAMES) };
    return Failure.internal(`${name}: ${message}${placeOf(stack)}`, { details, cause: error });
  }

  /** Reads a failure from a JSON object, as details of other failures contain it. */
  static read(value: Json | undefined): Failure | undefined {
    if (value === null || typeof value !== "object" || Array.isArray(value)) return undefined;
    const { code, message, retryable, details } = value;
    if (typeof code !== "string" || typeof message !== "string") return undefined;
    return new Failure(code, message, { retryable: retryable === true, details });
  }

  /** Returns the same failure with other details. */
  withDetails(details: Json): Failure {
    return this.with(this.message, details);
  }

  /**
   * Prefixes the message with the failed operation.
   *
   * ```ts
   * import { Failure } from "wattle-plugin";
   *
   * const failure = Failure.notFound("no row 7").context("load the portfolio");
   * assert.equal(failure.message, "load the portfolio: no row 7");
   * ```
   */
  context(operation: string): Failure {
    return this.with(`${operation}: ${this.message}`, this.details);
  }

  /**
   * Sets the HTTP status of the response if a web handler throws this failure; the default is 500.
   *
   * ```ts
   * import { Failure } from "wattle-plugin";
   *
   * const failure = Failure.invalid("`name` is empty").withStatus(422);
   * assert.equal(failure.status(), 422);
   * ```
   */
  withStatus(status: number): Failure {
    const { details } = this;
    const isObject = typeof details === "object" && details !== null && !Array.isArray(details);
    const others = isObject ? details : details === undefined ? {} : { facts: details };
    return this.with(this.message, { ...others, [STATUS]: status });
  }

  /** Returns the HTTP status that was set with {@link withStatus}. */
  status(): number | undefined {
    const status = detailOf(this, STATUS);
    return typeof status === "number" ? status : undefined;
  }

  /**
   * Returns the completion that the host refused because it violates the schema of its request: the
   * document in it if the host found one, otherwise the beginning of its text.
   *
   * ```ts
   * import { Failure } from "wattle-plugin";
   *
   * const failure = Failure.invalid("`/kind` is missing");
   * assert.equal(failure.refusedCompletion(), undefined);
   * const details = { answer: "Sure: {}", document: "{}" };
   * assert.equal(failure.withDetails(details).refusedCompletion(), "{}");
   * ```
   */
  refusedCompletion(): string | undefined {
    if (this.code !== code.INVALID) return undefined;
    const document = detailOf(this, "document");
    const refused = document === undefined ? detailOf(this, "answer") : document;
    return typeof refused === "string" ? refused : undefined;
  }

  /** Returns the failure as JSON. */
  toJSON(): Json {
    const { code, message, retryable, details } = this;
    return { code, message, retryable, ...(details === undefined ? {} : { details }) };
  }

  private with(message: string, details: Json | undefined): Failure {
    const { retryable, cause } = this;
    return new Failure(this.code, message, { retryable, details, cause });
  }
}

/** Returns a field of the details of a failure. */
export function detailOf({ details }: Failure, name: string): Json | undefined {
  if (details === null || typeof details !== "object" || Array.isArray(details)) return undefined;
  return details[name];
}

/** The output of one call of several, or its failure. */
export type Result<T> = T | Failure;

/** Returns the output of a call, or the failure that it throws. Other exceptions are thrown. */
export function settled<T>(call: () => T): Result<T> {
  try {
    return call();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
}

/** Returns true if an exception is a failure with one of the codes. */
export function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Failure && codes.includes(error.code);
}

/** Also detects errors of another realm, which engines create for host calls. */
function isError(thrown: unknown): thrown is Error {
  return thrown instanceof Error || Object.prototype.toString.call(thrown) === "[object Error]";
}

function describe(thrown: unknown): string {
  if (typeof thrown !== "object" || thrown === null) return String(thrown);
  try {
    return JSON.stringify(thrown) ?? String(thrown);
  } catch {
    return String(thrown);
  }
}
