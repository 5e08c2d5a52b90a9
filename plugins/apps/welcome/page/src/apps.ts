// The applications as they are shown: those that everybody knows, and whatever else is loaded.
import type { Schemas } from "@wattle/page/native";
import { KNOWN } from "./known.ts";

export type LoadedApp = Pick<Schemas["AppDocument"], "name" | "doc" | "version" | "page">;

/** This page itself. */
const SELF = "welcome";

/** `unknown`: the server has not said it. `bare`: there is no page to open. */
export type Status = "ready" | "unbuilt" | "bare" | "missing" | "unknown";

export interface Shown {
  name: string;
  title: string;
  about: string;
  watch: string | undefined;
  examples: readonly string[];
  version: string | undefined;
  /** Where its page is. */
  path: string | undefined;
  status: Status;
}

/** What is shown; `loaded` is missing as long as the server has not answered. */
export function shownApps(loaded: readonly LoadedApp[] | undefined): Shown[] {
  const known = KNOWN.map((app) => {
    const found = loaded?.find(({ name }) => name === app.name);
    const examples = found?.page?.examples ?? [];
    return {
      ...app,
      ...placeOf(found, loaded !== undefined),
      examples: examples.length > 0 ? examples : app.examples,
    };
  });
  const isOther = ({ name, page }: LoadedApp) =>
    page != null && name !== SELF && !KNOWN.some((app) => app.name === name);
  const others = (loaded ?? []).filter(isOther).map((app) => ({
    name: app.name,
    title: app.page?.title || app.name,
    about: app.doc,
    watch: undefined,
    examples: app.page?.examples ?? [],
    ...placeOf(app, true),
  }));
  return [...known, ...others.sort((one, other) => one.name.localeCompare(other.name))];
}

function placeOf(
  app: LoadedApp | undefined,
  isTold: boolean,
): Pick<Shown, "version" | "path" | "status"> {
  if (app === undefined) {
    return { version: undefined, path: undefined, status: isTold ? "missing" : "unknown" };
  }
  const { version, page } = app;
  if (page == null) return { version, path: undefined, status: "bare" };
  if (!page.built) return { version, path: undefined, status: "unbuilt" };
  return { version, path: ownPath(page.path), status: "ready" };
}

/** A path of this server and nothing else, whatever the server says. */
export function ownPath(path: string): string | undefined {
  return /^\/(?![/\\])/.test(path) ? path : undefined;
}

/** The page of an app with an example, which that page suggests to its user. */
export function tryAddress(path: string, example: string): string {
  return `${path}?initial=${encodeURIComponent(example)}`;
}
