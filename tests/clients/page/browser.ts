// A browser that all programs of a run share: `node browser.js`.
//
// It prints the address for `chromium.connect` in one line, and ends when its standard input does.
import { chromium } from "playwright-core";
import { OPTIONS } from "./launch.ts";

const server = await chromium.launchServer(OPTIONS);
console.log(server.wsEndpoint());
process.stdin.resume();
process.stdin.on("end", () => server.close());
