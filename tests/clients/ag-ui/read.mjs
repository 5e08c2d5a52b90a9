// Reads the AG-UI stream at an address as the official client does, and says what it has then:
//
//     node read.mjs http://127.0.0.1:7700/api/v1/threads/<thread>/events?format=ag-ui
//
// Every event must satisfy the protocol's schema, and all together the client's own rules. The
// answer is one line of JSON: `messages`, `state`, `interrupts`.

import { AbstractAgent, parseSSEStream, runHttpRequest } from "@ag-ui/client";
import { map } from "rxjs";

// Before its version 1 the package had no module of its own for schemas.
const { EventSchemas } = await import("@ag-ui/core/schemas").catch(() => import("@ag-ui/core"));

class Reader extends AbstractAgent {
  constructor(url) {
    super();
    this.url = url;
  }

  run() {
    const lines = parseSSEStream(runHttpRequest(() => fetch(this.url)));
    return lines.pipe(
      map((event) => {
        EventSchemas.parse(event);
        return event;
      }),
    );
  }
}

const agent = new Reader(process.argv[2]);
let outcome = null;
agent.subscribe({
  onRunFinishedEvent: ({ event }) => {
    outcome = event.outcome;
  },
});
await agent.runAgent();
console.log(JSON.stringify({ messages: agent.messages, state: agent.state, outcome }));
