// An MCP server on the official libraries: `node server.mjs <v1|v2> <stdio|http> [port]`.
//
// v1 is the library of the protocol with a handshake, v2 that of the stateless one. Over HTTP it
// prints its port and ends with its standard input, so that it never outlives who started it.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { z } from "zod";

const [library, carrier, port = "0"] = process.argv.slice(2);
const info = { name: "official", version: "1.0.0" };

/** The same tools on either library. */
function offer(server) {
  const shape = { a: z.number(), b: z.number() };
  const reading = { readOnlyHint: true, idempotentHint: true };
  server.registerTool(
    "add",
    {
      description: "Adds two numbers.",
      inputSchema: library === "v1" ? shape : z.object(shape),
      outputSchema: library === "v1" ? { sum: z.number() } : z.object({ sum: z.number() }),
      annotations: reading,
    },
    async ({ a, b }) => ({
      content: [{ type: "text", text: String(a + b) }],
      structuredContent: { sum: a + b },
    }),
  );
  server.registerTool("fail", { description: "Fails." }, async () => ({
    content: [{ type: "text", text: "out of order" }],
    isError: true,
  }));
  return server;
}

async function onV1() {
  const { McpServer } = await import("@modelcontextprotocol/sdk/server/mcp.js");
  const make = () => offer(new McpServer(info));
  if (carrier === "stdio") {
    const { StdioServerTransport } = await import("@modelcontextprotocol/sdk/server/stdio.js");
    return make().connect(new StdioServerTransport());
  }
  const { StreamableHTTPServerTransport } = await import(
    "@modelcontextprotocol/sdk/server/streamableHttp.js"
  );
  const sessions = new Map();
  return listen(async (request, response) => {
    let session = sessions.get(request.headers["mcp-session-id"]);
    if (!session) {
      session = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, session),
      });
      await make().connect(session);
    }
    await session.handleRequest(request, response);
  });
}

async function onV2() {
  const { McpServer, createMcpHandler } = await import("@modelcontextprotocol/server");
  const make = () => offer(new McpServer(info));
  if (carrier === "stdio") {
    const { serveStdio } = await import("@modelcontextprotocol/server/stdio");
    return serveStdio(make, { legacy: "reject" });
  }
  const handler = createMcpHandler(make);
  return listen(async (request, response) => {
    const { method, headers } = request;
    const body = method === "POST" ? await text(request) : undefined;
    const url = `http://${headers.host}${request.url}`;
    const answer = await handler.fetch(new Request(url, { method, headers, body }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
}

function listen(answer) {
  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      console.error(error);
      response.destroy();
    });
  });
  server.listen(Number(port), "127.0.0.1", () => console.log(`port ${server.address().port}`));
  process.stdin.on("end", () => process.exit(0)).resume();
}

await (library === "v1" ? onV1() : onV2());
