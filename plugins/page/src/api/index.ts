// Requests to the endpoints of an app, below the path at which its page is served.
import { isAway, lost, reached } from "../connection/state.ts";
import { texts } from "../language/language.ts";
import { fieldsOf } from "./fields.ts";

/** Start of the type of a problem that the host reports. Apps and proxies report none. */
const HOST_PROBLEM = "urn:wattle:problem:";

/** Statuses of a host that is busy, fails, stops or waits too long. */
const HOST_FAILURES = [429, 500, 503, 504];

/** The kind of a failure: no connection, an error response, or an unreadable response. */
export type FailureKind = "network" | "http" | "format";

/** A failed request. Its message can be shown to a user. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly kind: FailureKind;
  readonly status: number | undefined;
  readonly code: string | undefined;
  /** The body of the response, if it was JSON. */
  readonly body: unknown;

  constructor(kind: FailureKind, message: string, answer: Partial<ApiError> = {}) {
    super(message);
    this.kind = kind;
    this.status = answer.status;
    this.code = answer.code;
    this.body = answer.body;
  }
}

/** Returns the absolute URL of a path of the app, such as `api/sessions`. */
export function address(path: string): string {
  return new URL(path.replace(/^\/+/, ""), document.baseURI).href;
}

export interface RequestOptions extends Omit<RequestInit, "body" | "headers"> {
  /** Sent as JSON. A text is sent as it is. */
  body?: unknown;
  headers?: Record<string, string>;
}

/**
 * Sends a request, a POST if it has a body, and returns the response. Throws an error response as an
 * `ApiError`.
 */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const { body, headers, ...rest } = options;
  const init: RequestInit = { cache: "no-store", headers: { ...headers }, ...rest };
  if (body !== undefined) {
    init.method ??= "POST";
    init.body = typeof body === "string" ? body : JSON.stringify(body);
    init.headers = { "content-type": "application/json", ...headers };
  }
  const response = await connectedFetch(address(path), init);
  if (response.ok) return response;
  throw await errorOf(response);
}

/** Sends a request and returns the JSON document of the response; `undefined` if it is empty. */
export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const response = await send(path, options);
  const text = await read(response);
  if (text === "") return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new ApiError("format", texts().unreadable, { status: response.status });
  }
}

/**
 * `fetch` that reports to the banner whether the server was reached, and fails with an `ApiError`.
 */
export async function connectedFetch(
  input: RequestInfo | URL,
  init?: RequestInit,
): Promise<Response> {
  try {
    const response = await fetch(input, init);
    // A server that was lost may still be starting.
    if (!isAway(response)) reached();
    return response;
  } catch (error) {
    throw failureOf(error);
  }
}

async function read(response: Response): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    throw failureOf(error);
  }
}

/** Converts an error. An abort is kept, because the caller itself stopped the request. */
export function failureOf(error: unknown, message = texts().noConnection): Error {
  if (error instanceof DOMException && error.name === "AbortError") return error;
  lost();
  return new ApiError("network", message);
}

/** Returns the error in a response. Hosts, apps and proxies have different formats. */
export async function errorOf(response: Response): Promise<ApiError> {
  const { status } = response;
  const text = await read(response);
  try {
    return errorIn(status, JSON.parse(text));
  } catch {
    return new ApiError("http", texts().httpError(status), { status });
  }
}

/**
 * Returns the error in the body of a response, as a client has parsed it. The message of a host
 * that is busy, fails, stops or waits too long is in the language of the document.
 */
export function errorIn(status: number, body: unknown): ApiError {
  const message = messageFor(status, body);
  const code = codeIn(body);
  return new ApiError("http", message, { status, body, ...(code === undefined ? {} : { code }) });
}

function messageFor(status: number, body: unknown): string {
  const message = messageIn(body);
  if (message === undefined) return texts().httpError(status);
  const { type } = fieldsOf(body);
  const isOfHost = typeof type === "string" && type.startsWith(HOST_PROBLEM);
  return isOfHost && HOST_FAILURES.includes(status) ? texts().hostError(status, message) : message;
}

function messageIn(body: unknown): string | undefined {
  const { detail, message, error, title } = fieldsOf(body);
  const texts = [detail, message, error, fieldsOf(error).message, title];
  return texts.find((text): text is string => typeof text === "string" && text !== "");
}

function codeIn(body: unknown): string | undefined {
  const { code: own, error } = fieldsOf(body);
  const code = own ?? fieldsOf(error).code;
  return typeof code === "string" || typeof code === "number" ? String(code) : undefined;
}
