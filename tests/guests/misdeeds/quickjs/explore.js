// Tries files, environment, arguments and sockets for componentize-qjs (QuickJS). The engine gives
// scripts none of these, so the script calls the imports of WASI itself, and the host refuses them.

import { getArguments, getEnvironment } from "wasi:cli/environment@0.2.0";
import { getDirectories } from "wasi:filesystem/preopens@0.2.0";
import { instanceNetwork } from "wasi:sockets/instance-network@0.2.0";
import { resolveAddresses } from "wasi:sockets/ip-name-lookup@0.2.0";
import { createTcpSocket } from "wasi:sockets/tcp-create-socket@0.2.0";
import { createUdpSocket } from "wasi:sockets/udp-create-socket@0.2.0";

const LISTS = ["reached", "refused", "broken"];

const INPUT = '{"type":"object"}';
const OUTPUT = JSON.stringify({
  type: "object",
  properties: Object.fromEntries(LISTS.map((list) => [list, { type: "array" }])),
});

function loopback(port) {
  return { tag: "ipv4", val: { port, address: [127, 0, 0, 1] } };
}

/** Each attempt returns true if it works, and returns false or throws if the host refuses it. */
const ATTEMPTS = [
  ["files", () => getDirectories().length > 0],
  ["environment", () => getEnvironment().length > 0],
  ["arguments", () => getArguments().length > 0],
  [
    "connect",
    () => {
      createTcpSocket("ipv4").startConnect(instanceNetwork(), loopback(80));
      return true;
    },
  ],
  [
    "bind",
    () => {
      createUdpSocket("ipv4").startBind(instanceNetwork(), loopback(0));
      return true;
    },
  ],
  [
    "look up a name",
    () => {
      resolveAddresses(instanceNetwork(), "localhost");
      return true;
    },
  ],
];

/** Returns the list for an attempt. One that fails in the engine has not reached the host. */
function listOf(attempt) {
  try {
    return attempt() ? "reached" : "refused";
  } catch (error) {
    const isOfEngine = error instanceof TypeError || error instanceof ReferenceError;
    return isOfEngine ? "broken" : "refused";
  }
}

export const node = {
  describe() {
    return [
      {
        name: "explore",
        doc: "Tries files, environment, arguments and sockets.",
        inputSchema: INPUT,
        outputSchema: OUTPUT,
        extra: [],
      },
    ];
  },
  run() {
    const tried = ATTEMPTS.map(([name, attempt]) => [name, listOf(attempt)]);
    const updates = LISTS.map((channel) => {
      const names = tried.filter(([, list]) => list === channel).map(([name]) => name);
      return { channel, value: JSON.stringify(names), overwrite: false };
    });
    return { updates, goto: [], sends: [], extra: [] };
  },
};
