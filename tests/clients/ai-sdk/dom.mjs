// A document for React, as a browser has one. React looks for it when it is loaded, so this comes
// before it. Requests, streams and timers stay those of Node: happy-dom's own are no part of what
// is tested.

import { Window } from "happy-dom";

const window = new Window({ url: "http://page.invalid/" });
for (const name of ["window", "document", "navigator"]) {
  const value = name === "window" ? window : window[name];
  Object.defineProperty(globalThis, name, { value, configurable: true });
}

/** Closes the window, so that the program can end. */
export const close = () => window.happyDOM.close();
