// The export `web`. The build makes the component import it.

import type * as raw from "wattle:plugin/web@0.1.0";
import { Failure } from "../failure.ts";
import type { Extra } from "../json.ts";
import type { Plugin } from "../plugin.ts";
import { describeRoutes } from "../web/openapi.ts";
import { Request } from "../web/request.ts";
import { type HandOff, type Response, type StreamFormat, settle } from "../web/response.ts";
import { extra, option, rawExtra, rawOption, same } from "../wire/convert.ts";
import { guarded } from "./guarded.ts";

/** The export `web` of a component. */
export interface WebExports {
  /** Describes all endpoints. */
  routes(): raw.Route[];
  /** Handles a request with the endpoint for its method and route. */
  handle(request: raw.Request): raw.Response;
}

/** Returns the export `web` of a plugin. */
export function exportHandlers(plugin: Plugin): WebExports {
  // The descriptions are made while the component is built.
  const descriptions = describeRoutes(plugin.handlers);
  return {
    routes: () =>
      plugin.handlers.map(({ method, path }, index) => {
        return { method, path, extra: rawExtra({ openapi: descriptions[index] ?? {} }) };
      }),
    handle: (request) => guarded(() => rawResponse(settle(() => handle(plugin, request)))),
  };
}

function handle(plugin: Plugin, request: raw.Request): Response {
  const { method, route } = request;
  const handler = plugin.handlers.find((it) => it.method === method && it.path === route);
  if (handler === undefined) {
    throw Failure.notFound(`the plugin has no endpoint \`${method} ${route}\``);
  }
  const typed = new Request({
    method,
    path: request.path,
    route,
    params: request.params,
    queryPairs: request.query,
    headers: request.headers,
    body: request.body,
    tenant: option(request.tenant, same),
    extra: extra(request.extra),
  });
  return handler.handle(typed);
}

function rawResponse({ status, headers, body }: Response): raw.Response {
  return { status, headers, body: rawBody(body) };
}

function rawBody(body: Response["body"]): raw.Body {
  if (body.type === "bytes") return { tag: "bytes", val: body.bytes };
  if (body.type === "blob") return { tag: "blob", val: body.blob };
  if (body.type === "hand_off") return { tag: "hand-off", val: rawHandOff(body.handOff) };
  return { tag: "empty" };
}

function rawHandOff(handOff: HandOff): raw.HandOff {
  const { cancelOnDisconnectMs: graceMs, nodes } = handOff;
  const cancel: Extra = graceMs === undefined ? {} : { on_disconnect: "cancel", grace_ms: graceMs };
  const shown: Extra = nodes === undefined ? {} : { nodes: [...nodes] };
  return {
    threadId: handOff.threadId,
    runId: rawOption(handOff.runId, same),
    format: rawFormat(handOff.format),
    after: rawOption(handOff.after, same),
    extra: rawExtra({ ...handOff.extra, ...cancel, ...shown }),
  };
}

function rawFormat(format: StreamFormat): raw.StreamFormat {
  return typeof format === "string" ? { tag: format } : { tag: "custom", val: format.custom };
}
