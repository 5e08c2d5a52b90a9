// The applications that the page shows: those of this repository, and all others that are loaded.
import type { Schemas } from "@wattle/page/native";
import type { Texts } from "./texts.ts";

export type LoadedApp = Pick<Schemas["AppDocument"], "name" | "doc" | "version" | "page">;

/** This page itself. */
const SELF = "welcome";

/**
 * The applications of this repository in the order in which the page shows them, with examples for
 * a page without its server. They are in the language of the applications.
 */
const EXAMPLES = {
  asset: ["昨天买入腾讯 100 股 320", "持有贵州茅台 200 股，成本 1500"],
  reasoning: ["客户张伟的订单", "统计各区域的客户数量"],
  expense: ["昨天打车花了20元", "今天早餐15元，午饭38元"],
  travel: ["https://www.youtube.com/watch?v=dQw4w9WgXcQ"],
  nl2sql: ["2024年每月的销售额", "销售额最高的5个商品"],
};

export type KnownName = keyof typeof EXAMPLES;

/** `unknown`: the server has not said it. `bare`: there is no page to open. */
export type Status = "ready" | "unbuilt" | "bare" | "missing" | "unknown";

export interface Shown {
  name: string;
  title: string;
  about: string;
  watch: string | undefined;
  examples: readonly string[];
  version: string | undefined;
  /** Path of its page. */
  path: string | undefined;
  status: Status;
}

/** Returns the applications to show. `loaded` is missing until the server has responded. */
export function shownApps(loaded: readonly LoadedApp[] | undefined, texts: Texts): Shown[] {
  const known = (Object.keys(EXAMPLES) as KnownName[]).map((name) => {
    const found = loaded?.find((app) => app.name === name);
    const examples = found?.page?.examples ?? [];
    return {
      name,
      ...texts.known[name],
      ...placeOf(found, loaded !== undefined),
      examples: examples.length > 0 ? examples : EXAMPLES[name],
    };
  });
  const isOther = ({ name, page }: LoadedApp) =>
    page != null && name !== SELF && !Object.hasOwn(EXAMPLES, name);
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

/** Returns a path of this server, and `undefined` for anything else that the server names. */
export function ownPath(path: string): string | undefined {
  return /^\/(?![/\\])/.test(path) ? path : undefined;
}

/** Returns the URL of an app's page that suggests an example to its user. */
export function tryAddress(path: string, example: string): string {
  return `${path}?initial=${encodeURIComponent(example)}`;
}
