// How the browser of all programs is started.
import { type Browser, chromium } from "playwright-core";

/** Nothing but this machine can be reached, and the browser asks for nothing by itself. */
const FLAGS = [
  "--no-sandbox",
  "--no-proxy-server",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

const { CHROMIUM, WATTLE_BROWSER } = process.env;

/** The program of the browser and its flags. */
export const OPTIONS = {
  args: FLAGS,
  ...(CHROMIUM === undefined ? {} : { executablePath: CHROMIUM }),
};

/** Returns the browser that `browser.ts` has started, or one of its own. */
export function open(): Promise<Browser> {
  return WATTLE_BROWSER ? chromium.connect(WATTLE_BROWSER) : chromium.launch(OPTIONS);
}
