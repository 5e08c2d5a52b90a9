// A browser that all programs of a run share: `node browser.mjs`.
//
// It prints the address for `chromium.connect` in one line, and ends when its standard input does.

import { chromium } from "playwright-core";
import { FLAGS } from "./launch.mjs";

const server = await chromium.launchServer({ executablePath: process.env.CHROMIUM, args: FLAGS });
console.log(server.wsEndpoint());
process.stdin.resume();
process.stdin.on("end", () => server.close());
