// The official JavaScript client of LangGraph on a server with the app `reference`:
//
//     node --experimental-websocket main.mjs <url of the server> [<scenario> ...]
//
// Node.js 20 has the class `WebSocket` only with the option, and later versions accept it.
//
// Each scenario is a function that checks what it gets. The answer is one line of JSON on standard
// output: what passed, with what it returned; what was left out, with the feature that the client
// lacks; and what failed, with the reason. The exit code is 1 if anything failed. `WATTLE_API_KEY`
// is sent if it is set.

import { Client } from "@langchain/langgraph-sdk";

import { Lacks } from "./checks.mjs";
import * as cut from "./cut.mjs";
import * as kept from "./kept.mjs";
import * as scenarios from "./scenarios.mjs";
import * as work from "./work.mjs";

/** Nothing takes longer than a moment; a stream without an end must not look like slowness. */
const TIMEOUT_MS = 30_000;

/** All of them, by their names. */
const all = { ...scenarios, ...work, ...kept, ...cut };

const [apiUrl, ...wanted] = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in all));
if (apiUrl === undefined || unknown.length > 0) {
  console.error(apiUrl ? `there is no scenario ${unknown}` : "say where the server is");
  process.exit(2);
}

function client() {
  // A refusal is an answer: nothing is tried again.
  return new Client({
    apiUrl,
    apiKey: process.env.WATTLE_API_KEY ?? null,
    callerOptions: { maxRetries: 0 },
  });
}

/** The error, and the line of ours that met it. */
function reason(error) {
  const place = error.stack?.match(/(scenarios|work|kept|cut|checks)\.mjs:\d+/)?.[0] ?? "?";
  return `${place}: ${error.message}`;
}

function within(promise, ms) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

const answer = { passed: {}, left_out: {}, failed: {} };
for (const [name, scenario] of Object.entries(all)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  try {
    answer.passed[name] = await within(scenario(client()), TIMEOUT_MS);
  } catch (error) {
    if (error instanceof Lacks) answer.left_out[name] = error.message;
    else answer.failed[name] = reason(error);
  }
}
console.log(JSON.stringify(answer));
// Not `exitCode`: a stream that was given up would keep the process alive.
process.exit(Object.keys(answer.failed).length > 0 ? 1 : 0);
