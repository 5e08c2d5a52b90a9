// A user of the chat page: `node user.mjs <address of the application>`.
//
// Reads what to do, one JSON document a line, and answers each with a line that says what is then
// on the screen, what this visit requested, and what went to the console. So a test can look at
// the server between two actions.
//
// | `do` | with | |
// |---|---|---|
// | `open` | `session`, `resume`, `bare` | opens the page of a session with its stored messages |
// | `send` | `text` | sends a message |
// | `regenerate` | | asks for the last answer again |
// | `wait` | `status`, or `tool` and `state` | waits until it is seen |
// | `stop` | | stops the answer, as the page's button does |
// | `leave` | | closes the page and its connections |

import { close } from "./dom.mjs";
import { Shown } from "./page.mjs";
import { Visit } from "./visit.mjs";
import { Console } from "node:console";
import { createInterface } from "node:readline";

const base = process.argv[2];

/** How long an action may take. A busy machine is slow. */
const PATIENCE_MS = 60_000;

// Standard output is for the answers alone.
const log = new Console(process.stderr);
for (const name of ["debug", "info", "log"]) console[name] = (...words) => log.log(...words);
const complaints = [];
for (const name of ["error", "warn"]) {
  console[name] = (...words) => complaints.push(words.map(String).join(" "));
}
process.on("unhandledRejection", (error) => complaints.push(String(error)));

let visit;
let page;

async function open({ session, resume = false, bare = false }) {
  visit = new Visit(base, session);
  const messages = await visit.stored();
  const transport = visit.transport(bare);
  page = await Shown.open({ id: session, messages, resume, transport });
  if (resume) await visit.resumed;
}

/** Waits for a status, or for the card of a tool in the last message. */
function wait({ status, tool, state }) {
  const isCard = (part) => part.tool === tool && part.state === state;
  return page.until((seen) => {
    if (status !== undefined && seen.status !== status) return false;
    const parts = seen.messages.at(-1)?.parts ?? [];
    return tool === undefined || parts.some(isCard);
  });
}

async function stop() {
  await page.stop();
  await visit.cancel();
}

function leave() {
  page.close();
  visit.close();
  page = undefined;
}

const actions = {
  open,
  wait,
  stop,
  leave,
  send: ({ text }) => page.after((chat) => void chat.sendMessage({ text })),
  regenerate: () => page.after((chat) => void chat.regenerate()),
};

/** Does one thing, and says what came of it. */
async function act({ do: name, ...how }) {
  let timer;
  const late = new Promise((_, reject) => {
    const failure = new Error(`\`${name}\` is not done after ${PATIENCE_MS} ms`);
    timer = setTimeout(() => reject(failure), PATIENCE_MS);
  });
  let failure;
  try {
    await Promise.race([actions[name](how), late]);
  } catch (error) {
    failure = String(error);
  }
  clearTimeout(timer);
  return { ...page?.see(), requests: visit?.requests, complaints, failure };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await act(JSON.parse(line)))}\n`);
}
visit?.close();
await close();
process.exit();
