// How the browser of all programs is started.

import { chromium } from "playwright-core";

/** Nothing but this machine can be reached, and the browser asks for nothing by itself. */
export const FLAGS = [
  "--no-sandbox",
  "--no-proxy-server",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/** The browser that `browser.mjs` has started, or one of its own. */
export function open() {
  const { WATTLE_BROWSER, CHROMIUM } = process.env;
  return WATTLE_BROWSER
    ? chromium.connect(WATTLE_BROWSER)
    : chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}
