// Nodes and a handler that call the host for settings, pictures, other graphs and tenants.

import {
  blob,
  type Extra,
  Failure,
  handler,
  llm,
  node,
  Response,
  runs,
  settings,
  tenants,
} from "wattle-plugin";
import * as z from "zod";

export const readSettings = node(
  "read_settings",
  {
    doc: "Reads the settings of the app.",
    output: z.object({
      color: z.string().describe("A setting."),
      language: z.string().describe("A setting with a default."),
      missing: z.string().describe("Code of the failure for a setting that is not set."),
      all: z.unknown().describe("All settings."),
    }),
  },
  () => ({
    color: settings.require("color", z.string()),
    language: settings.textOr("language", "en"),
    missing: codeOf(() => settings.require("shape", z.string())),
    all: settings.all(),
  }),
);

/** Returns the code of the failure of a call, or an empty text. */
function codeOf(call: () => unknown): string {
  try {
    call();
    return "";
  } catch (error) {
    return Failure.from(error).code;
  }
}

export const draw = node(
  "draw",
  {
    doc: "Generates a picture and reads it.",
    input: z.object({ prompt: z.string().describe("The prompt.") }),
    output: z.object({
      picture: z.unknown().describe("Type, size and bytes of the picture."),
      is_linked: z.boolean().describe("Whether the picture comes with the link of its blob."),
      refused: z.string().describe("Code of the failure for a reference to no blob."),
    }),
  },
  ({ prompt }) => {
    const [image] = llm.generateImages("chat", prompt);
    if (image === undefined) throw Failure.notFound("there is no picture");
    const { mediaType, size } = blob.stat(image.blob);
    const start = new TextDecoder().decode(blob.getRange(image.blob, 0, 5));
    const text = new TextDecoder().decode(blob.get(image.blob));
    const isLinked = image.link() === blob.link(image.blob);
    return {
      picture: { media_type: mediaType, size, start, text },
      is_linked: isLinked,
      refused: codeOf(() => blob.stat("none")),
    };
  },
);

export const delegate = node(
  "delegate",
  {
    doc: "Runs three graphs: one that completes, one that fails, and one that asks.",
    input: z.object({ text: z.string().describe("The text.") }),
    output: z.object({
      outcomes: z.array(z.unknown()).describe("States of graphs, and codes of failures."),
      refused: z.string().describe("Code of the failure for the list of threads."),
    }),
  },
  ({ text }) => {
    const fault = {
      code: "sold-out",
      message: "there are no seats",
      retryable: false,
      details: { seats: 0 },
    };
    const outcomes = [
      outcomeOf("words", { text }),
      outcomeOf("fail", fault),
      outcomeOf("approve", { text }),
    ];
    return { outcomes, refused: codeOf(() => runs.threads({ graph: "words" })) };
  },
);

function outcomeOf(graph: string, input: Extra): unknown {
  const { outcome, state } = runs.startAndWait({ graph, input });
  return outcome.type === "failed" ? { code: outcome.failure.code } : state;
}

export const whose = node(
  "whose",
  {
    doc: "Names the tenant of the run.",
    output: z.object({
      tenant: z.string().describe("The tenant."),
      refused: z.string().describe("Code of the failure for a route of the tenant."),
    }),
  },
  (_input, { tenant = "" }) => ({ tenant, refused: codeOf(() => tenants.getRoute("chat")) }),
);

export const ownModel = handler(
  "PUT",
  "/models/{route}",
  { doc: "Gives the tenant a model of its own, and takes it back." },
  (request) => {
    const route = request.param("route");
    tenants.setRoute(route, request.json());
    const own = tenants.getRoute(route) ?? null;
    tenants.removeRoute(route);
    const removed = tenants.getRoute(route) ?? null;
    return Response.json(200, { own, removed, tenant: request.tenant ?? null });
  },
);
