// Requests to the endpoints of an app, below wherever its page is served.
import { isAway, lost, reached } from "../connection/state.ts";

/** A failure as the host says it: `application/problem+json`. */
export interface Problem {
  type?: string;
  title?: string;
  status?: number;
  code?: string;
  detail?: string;
  [more: string]: unknown;
}

/** What went wrong: no connection, an answer that is an error, or one that cannot be read. */
export type FailureKind = "network" | "http" | "format";

const NO_CONNECTION = "无法连接到服务，请检查网络后重试。";
const UNREADABLE = "服务的回答无法读取。";

/** A request without the answer that was asked for. Its message can be shown to a user. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly kind: FailureKind;
  readonly status: number | undefined;
  readonly code: string | undefined;
  /** The body of the answer, if it was JSON. */
  readonly body: unknown;

  constructor(kind: FailureKind, message: string, answer: Partial<ApiError> = {}) {
    super(message);
    this.kind = kind;
    this.status = answer.status;
    this.code = answer.code;
    this.body = answer.body;
  }
}

/** The absolute address of a path of the app, such as `api/sessions`. */
export function address(path: string): string {
  return new URL(path.replace(/^\/+/, ""), document.baseURI).href;
}

export interface RequestOptions {
  method?: string;
  /** Sent as JSON, or as it is if it is form data, a file or a text. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** The request goes on when the page is left. Its body may have 64 KiB at most. */
  keepalive?: boolean;
}

/** Sends a request and returns its answer as it came, which is not an error. */
export async function send(path: string, options: RequestOptions = {}): Promise<Response> {
  const response = await reach(address(path), options);
  if (response.ok) return response;
  throw await errorOf(response);
}

/** Sends a request and returns the JSON document of its answer; `undefined` if it is empty. */
export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const response = await send(path, options);
  const text = await read(response);
  if (text === "") return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new ApiError("format", UNREADABLE, { status: response.status });
  }
}

async function reach(url: string, options: RequestOptions): Promise<Response> {
  const { method = options.body === undefined ? "GET" : "POST", body, headers, signal } = options;
  const isRaw = body instanceof FormData || body instanceof Blob || typeof body === "string";
  const init: RequestInit = { method, cache: "no-store", headers: { ...headers } };
  if (signal) init.signal = signal;
  if (options.keepalive) init.keepalive = true;
  if (body !== undefined) init.body = isRaw ? (body as BodyInit) : JSON.stringify(body);
  if (body !== undefined && !isRaw) {
    init.headers = { "content-type": "application/json", ...headers };
  }
  return connectedFetch(url, init);
}

/** `fetch` that tells the banner whether the server was reached, and fails with an `ApiError`. */
export async function connectedFetch(
  input: RequestInfo | URL,
  init?: RequestInit,
): Promise<Response> {
  try {
    const response = await fetch(input, init);
    // One that is back after it was lost may still be starting.
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

/** An abort stays an abort, since the caller itself stopped the request. */
function failureOf(error: unknown): Error {
  if (error instanceof DOMException && error.name === "AbortError") return error;
  lost();
  return new ApiError("network", NO_CONNECTION);
}

/** The error that an answer stands for. Hosts, apps and proxies each have a form of their own. */
export async function errorOf(response: Response): Promise<ApiError> {
  const { status } = response;
  const text = await read(response);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return new ApiError("http", `服务返回了错误（${status}）。`, { status });
  }
  const message = messageIn(body) ?? `服务返回了错误（${status}）。`;
  const code = codeIn(body);
  return new ApiError("http", message, { status, body, ...(code === undefined ? {} : { code }) });
}

function field(body: unknown, name: string): unknown {
  return typeof body === "object" && body !== null ? Reflect.get(body, name) : undefined;
}

function messageIn(body: unknown): string | undefined {
  const error = field(body, "error");
  const candidates = [
    field(body, "detail"),
    field(body, "message"),
    error,
    field(error, "message"),
  ];
  const texts = [...candidates, field(body, "title")];
  return texts.find((text): text is string => typeof text === "string" && text !== "");
}

function codeIn(body: unknown): string | undefined {
  const code = field(body, "code") ?? field(field(body, "error"), "code");
  return typeof code === "string" || typeof code === "number" ? String(code) : undefined;
}
