// Streams that are cut on their way: nothing is lost, and nothing comes twice.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { Client } from "@langchain/langgraph-sdk";

import { INPUT, MODES, all, needs } from "./checks.mjs";

const { deepEqual, equal } = assert;

/** How many events of a stream come through before it is cut. */
const AFTER = 3;

/** A proxy on loopback that cuts the first streams behind some of their events. */
class Proxy {
  cuts = 0;
  #to;
  #times;
  #server = createServer((client) => this.#serve(client));

  constructor(url, times) {
    this.#to = new URL(url);
    this.#times = times;
  }

  async listen() {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  close() {
    this.#server.close();
  }

  #serve(client) {
    const server = connect(Number(this.#to.port), this.#to.hostname);
    const end = () => {
      client.destroy();
      server.destroy();
    };
    let seen = "";
    client.on("error", end).on("close", end).on("data", (data) => server.write(data));
    server.on("error", end).on("close", end).on("data", (data) => {
      seen += data.toString("latin1");
      const cut = this.cuts < this.#times ? endOf(seen, AFTER) : -1;
      if (cut < 0) {
        client.write(data);
        return;
      }
      this.cuts += 1;
      client.end(data.subarray(0, data.length - (seen.length - cut)));
      server.destroy();
    });
  }
}

/** Where the chunk ends that has the event of this number; negative if it is not there. */
function endOf(seen, number) {
  const ends = [...seen.matchAll(/\r\nid: [^\r]*\r\n\r\n\r\n/g)];
  return ends.length < number ? -1 : ends[number - 1].index + ends[number - 1][0].length;
}

export async function behind_a_cut(client) {
  needs("streams that go on behind a cut", "streamWithRetry" in client.runs);
  const proxy = new Proxy(client.threads.apiUrl, 2);
  try {
    const other = new Client({ apiUrl: await proxy.listen(), apiKey: null });
    const { thread_id } = await client.threads.create();
    let run_id;
    const parts = await all(
      other.runs.stream(thread_id, "agent", {
        input: INPUT,
        streamMode: MODES,
        streamResumable: true,
        onRunCreated: (run) => {
          run_id = run.run_id;
        },
      }),
    );
    equal(proxy.cuts, 2);
    deepEqual(parts, await all(client.runs.joinStream(thread_id, run_id, { lastEventId: "-1" })));
    return parts.map(({ event }) => event);
  } finally {
    proxy.close();
  }
}
