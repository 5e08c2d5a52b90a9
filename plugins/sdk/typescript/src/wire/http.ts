// Calls of `http`.

import * as raw from "wattle:plugin/http@0.1.0";
import type { Result } from "../failure.ts";
import { type Body, type Request, Response } from "../http.ts";
import { call, extra, rawExtra, rawOption, result, same } from "./convert.ts";

export function send(request: Request): Response {
  return response(call(() => raw.send(rawRequest(request))));
}

export function sendAll(requests: readonly Request[]): Array<Result<Response>> {
  return raw.sendAll(requests.map(rawRequest)).map((it) => result(it, response));
}

function rawRequest(request: Request): raw.Request {
  return {
    method: request.method,
    url: request.url,
    headers: request.headers,
    body: rawBody(request.body),
    timeoutMs: rawOption(request.timeoutMs, same),
    idempotencyKey: rawOption(request.idempotencyKey, same),
    extra: rawExtra(request.extra),
  };
}

function rawBody(body: Body): raw.Body {
  if (body.type === "text") return { tag: "text", val: body.text };
  if (body.type === "bytes") return { tag: "bytes", val: body.bytes };
  if (body.type === "blob") return { tag: "blob", val: body.blob };
  return { tag: "empty" };
}

function response(response: raw.Response): Response {
  return new Response({ ...response, extra: extra(response.extra) });
}
