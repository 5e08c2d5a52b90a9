// The common endpoints of conversations.

import * as z from "zod/mini";
import type { Type } from "../json.ts";
import { type EndpointTypes, Handler, type HandlerEntry, type Method } from "../web/handler.ts";
import type { Request } from "../web/request.ts";
import { ErrorDocument, respond } from "../web/respond.ts";
import { Response } from "../web/response.ts";
import { status } from "../web/status.ts";
import type { Chat } from "./chat.ts";
import {
  AnswerRequest,
  ChatError,
  ChatRequest,
  Reply,
  ThreadDocument,
  ThreadList,
  TitleRequest,
  Waiting,
} from "./documents.ts";

/** The endpoints of conversations by their names, see {@link endpoints}. */
export type Endpoints = Record<
  "send" | "stream" | "list" | "show" | "rename" | "delete" | "join" | "cancel" | "answer",
  HandlerEntry
>;

const OPTIONAL = z.optional(z.string());

/**
 * Declares the endpoints of the conversations of a {@link Chat}, below a path. `plugin` names those
 * that the app offers. An app that needs another form of an endpoint declares the endpoint itself.
 *
 * | name | endpoint | request | responses |
 * |---|---|---|---|
 * | `send` | `POST /chat` | {@link ChatRequest} | {@link Reply}; 202 with {@link Waiting} |
 * | `stream` | `POST /chat/stream` | {@link ChatRequest}, `?format=` | see {@link Chat.stream} |
 * | `list` | `GET /threads` | `?limit=&after=&text=` | {@link ThreadList} |
 * | `show` | `GET /threads/{id}` | | {@link ThreadDocument} |
 * | `rename` | `PATCH /threads/{id}` | {@link TitleRequest} | 204 |
 * | `delete` | `DELETE /threads/{id}` | | 204 |
 * | `join` | `GET /threads/{id}/stream` | `?format=` | see {@link Chat.join}; 204 |
 * | `cancel` | `POST /threads/{id}/cancel` | | {@link ThreadDocument} |
 * | `answer` | `POST /threads/{id}/answers` | {@link AnswerRequest} | those of `send` |
 *
 * A refused request has the body `{"error": "..."}` with one of the {@link Texts}. A failed run has the
 * status 502 and a {@link ChatError} with {@link Texts.failed}. Each response has the header
 * `cache-control: no-store`, because a conversation changes at any time.
 *
 * ```ts
 * import { chat, plugin, Request } from "wattle-plugin";
 * import { FakeHost } from "wattle-plugin/testing";
 *
 * const CHAT = new chat.Chat("notes", { titleChars: 80 });
 * const { stream, list, show } = chat.endpoints(CHAT, "/api");
 *
 * export default plugin(stream, list, show);
 *
 * const host = new FakeHost();
 * const request = new Request().withBody('{"message": "hi"}');
 * const response = host.run(() => stream.handle(request));
 * assert.equal(response.status, 200);
 * assert.equal(host.started()[0]?.graph, "notes");
 * ```
 */
export function endpoints(chat: Chat, path: string): Endpoints {
  const at = (
    method: Method,
    below: string,
    types: EndpointTypes<Type>,
    work: (request: Request<unknown>) => Response,
  ) => endpoint(method, path + below, types, work);
  const id = (request: Request<unknown>) => request.param("id");
  const ended = { returns: { 200: Reply, 202: Waiting }, error: ChatError };
  return {
    send: at("POST", "/chat", { doc: SEND, body: ChatRequest, ...ended }, (request) =>
      chat.wait(chat.send(request)).toResponse(),
    ),
    stream: at(
      "POST",
      "/chat/stream",
      { doc: STREAM, query: { format: OPTIONAL }, body: ChatRequest, events: z.unknown() },
      (request) => chat.stream(request),
    ),
    list: at("GET", "/threads", { doc: LIST, query: PAGE, returns: ThreadList }, (request) =>
      Response.json(200, chat.list(request)),
    ),
    show: at("GET", "/threads/{id}", { doc: SHOW, returns: ThreadDocument }, (request) =>
      Response.json(200, chat.show(id(request))),
    ),
    rename: at(
      "PATCH",
      "/threads/{id}",
      { doc: RENAME, body: TitleRequest, ...NOTHING },
      (request) => {
        chat.rename(id(request), request);
        return Response.empty(status.NO_CONTENT);
      },
    ),
    delete: at("DELETE", "/threads/{id}", { doc: DELETE, ...NOTHING }, (request) => {
      chat.delete(id(request));
      return Response.empty(status.NO_CONTENT);
    }),
    join: at(
      "GET",
      "/threads/{id}/stream",
      { doc: JOIN, query: { format: OPTIONAL }, events: z.unknown(), ...NOTHING },
      (request) => chat.join(id(request), request),
    ),
    cancel: at(
      "POST",
      "/threads/{id}/cancel",
      { doc: CANCEL, returns: ThreadDocument },
      (request) => Response.json(200, chat.cancel(id(request))),
    ),
    answer: at(
      "POST",
      "/threads/{id}/answers",
      { doc: ANSWER, body: AnswerRequest, ...ended },
      (request) => chat.answer(id(request), request).toResponse(),
    ),
  };
}

/** Declares an endpoint whose responses no cache stores. */
function endpoint(
  method: Method,
  path: string,
  types: EndpointTypes<Type>,
  work: (request: Request<unknown>) => Response,
): HandlerEntry {
  const all = { error: ErrorDocument, ...types };
  return new Handler(method, path, all, (request) =>
    respond(request, () => work(request)).withHeader("cache-control", "no-store"),
  );
}

/** A response without a body. */
const NOTHING = { returns: { [status.NO_CONTENT]: undefined } };

/** The parameters of a list. */
const PAGE = {
  limit: z.optional(z.int().check(z.minimum(0))),
  after: OPTIONAL,
  text: OPTIONAL,
};

const SEND = "Sends a message to a conversation and waits for the reply.";

const STREAM =
  "Sends a message to a conversation and streams the run: as the host's own events, or with " +
  "`?format=ai-sdk` as a message of the AI SDK.";

const LIST = "Lists the conversations, newest update first.";

const SHOW =
  "Responds with the messages and the pending questions of a conversation. Messages of the active " +
  "run are omitted, because its stream has them from the beginning.";

const RENAME = "Sets the title of a conversation.";

const DELETE = "Deletes a conversation. Its active run is cancelled first.";

const JOIN =
  "Streams the active run of a conversation from its beginning: as a message of the AI SDK, or with " +
  "`?format=sse` as the host's own events. Responds with 204 if there is none.";

const CANCEL =
  "Cancels the active run of a conversation, if there is one, and responds with the conversation.";

const ANSWER = "Answers a pending question of a conversation and waits for the reply.";
