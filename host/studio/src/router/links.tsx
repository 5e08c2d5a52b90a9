// Links between the views of the studio. Each view has a function here that returns its route.
import { useLocation, useParams, useRouter } from "@tanstack/react-router";
import type { AnchorHTMLAttributes, MouseEvent, ReactNode } from "react";
import { given } from "../api/given.ts";
import type { RunPlace, ThreadPlace } from "../api/log.ts";
import type { InboxFilter } from "../inbox/filter.ts";
import type { OperationsFilter } from "../operations/filter.ts";
import type { RunsFilter } from "../runs/filter.ts";
import type { ThreadFilter } from "../threads/filter.ts";
import { publicPath } from "./base.ts";
import { runText } from "./run-text.ts";
import { type Checks, readSearch, type Search, writeSearch } from "./search.ts";

/** Returns the route of the list of threads. */
export function threadsRoute(filter: ThreadFilter = {}): string {
  return `/threads${writeSearch(filter)}`;
}

/** Returns the route of a thread. `tenant` is that of the thread, if the list named one. */
export function threadRoute(thread: string, tenant?: string): string {
  return `/threads/${encodeURIComponent(thread)}${writeSearch({ tenant })}`;
}

/** Returns the route of the list of the runs of all threads. */
export function runsRoute(filter: RunsFilter = {}): string {
  return `/runs${writeSearch(filter)}`;
}

/** Returns the route of a run. `at` is the sequence number of the event that is shown. */
export function runRoute(place: RunPlace, at?: number, search: RunSearch = {}): string {
  return runViewRoute(place, { ...search, at: at?.toString() });
}

/**
 * What a view of a run shows: the event `at`, the checkpoint of the graph `ns`, or a node. `row` is
 * the row of the timeline that is shown if it is not that of the event. `closed` has the closed rows
 * of the timeline, and `open` the open nodes of the graph.
 */
export interface RunSearch {
  view?: string | undefined;
  closed?: string | undefined;
  open?: string | undefined;
  row?: string | undefined;
  at?: string | undefined;
  checkpoint?: string | undefined;
  ns?: string | undefined;
  type?: string | undefined;
  node?: string | undefined;
}

/** Returns the route of a view of a run. */
export function runViewRoute({ thread, run, tenant }: RunPlace, search: RunSearch = {}): string {
  const path = `/threads/${encodeURIComponent(thread)}/runs/${encodeURIComponent(run)}`;
  return path + writeSearch({ ...search, tenant });
}

/** What the view of a checkpoint shows: that of the graph `ns`, compared with `against`. */
export interface CheckpointSearch {
  ns?: string | undefined;
  against?: string | undefined;
}

/** Returns the route of a checkpoint. */
export function checkpointRoute(
  { thread, tenant }: ThreadPlace,
  checkpoint: number | string,
  search: CheckpointSearch = {},
): string {
  const path = `/threads/${encodeURIComponent(thread)}/checkpoints/${encodeURIComponent(checkpoint)}`;
  return path + writeSearch({ ...search, tenant });
}

/** A row of one of two runs that are compared. */
export interface ComparedRow {
  side: "left" | "right";
  /** Id of the row. */
  row: string;
}

/** What is shown beside the rows of two runs: one of them, or the difference of the end states. */
export type ComparedPart = ComparedRow | "states";

/** Returns the route of the comparison of two runs. */
export function compareRoute(left: RunPlace, right: RunPlace, part?: ComparedPart): string {
  const sides = { left: runText(left), right: runText(right) };
  const shown = part === "states" ? { show: part } : { side: part?.side, at: part?.row };
  return `/compare${writeSearch({ ...sides, ...shown, tenant: left.tenant ?? right.tenant })}`;
}

/** Whose runs are listed for a comparison: those of the thread, or of all threads of its graph. */
export const LISTED_RUNS = ["thread", "graph"] as const;

export type ListedRuns = (typeof LISTED_RUNS)[number];

/** Returns the route of the choice of a run with which the left one is compared. */
export function chooseRunRoute(left: RunPlace, of?: ListedRuns): string {
  return `/compare${writeSearch({ left: runText(left), of, tenant: left.tenant })}`;
}

/** Returns the route of an app. */
export function appRoute(app: string): string {
  return `/apps/${encodeURIComponent(app)}`;
}

/** What the view of a graph shows: a version, what it is compared with, and a node. */
interface GraphSearch {
  version?: string | undefined;
  against?: string | undefined;
  node?: string | undefined;
}

/** Returns the route of a graph of an app. */
export function graphRoute(app: string, graph: string, search: GraphSearch = {}): string {
  const { version, against, node } = search;
  const values = writeSearch({ version, against, node });
  return `${appRoute(app)}/graphs/${encodeURIComponent(graph)}${values}`;
}

/** What the playground shows: a graph or one of its nodes, or a tool; and for which tenant. */
export interface PlaySearch {
  graph?: string | undefined;
  node?: string | undefined;
  tool?: string | undefined;
  tenant?: string | undefined;
}

/** Returns the route of the playground of an app. */
export function playRoute(app: string, search: PlaySearch = {}): string {
  const { graph, node, tool, tenant } = search;
  return `${appRoute(app)}/play${writeSearch({ graph, node, tool, tenant })}`;
}

/** Returns the route of the list of plugins. */
export function pluginsRoute(): string {
  return "/plugins";
}

/** Returns the route of a plugin in an app. */
export function pluginRoute(plugin: string, app?: string): string {
  return `/plugins/${encodeURIComponent(plugin)}${writeSearch({ app })}`;
}

/** What the playground of a plugin shows: a node or a tool, in which app, and for which tenant. */
interface PluginPlaySearch {
  app?: string | undefined;
  node?: string | undefined;
  tool?: string | undefined;
  tenant?: string | undefined;
}

/** Returns the route of the playground of a plugin, in an app or of a standalone plugin. */
export function pluginPlayRoute(plugin: string, search: PluginPlaySearch = {}): string {
  const { app, node, tool, tenant } = search;
  return `${pluginRoute(plugin)}/play${writeSearch({ app, node, tool, tenant })}`;
}

/** Returns the route of the inbox. */
export function inboxRoute(filter: InboxFilter = {}): string {
  return `/inbox${writeSearch(filter)}`;
}

/** Returns the route of a part of the host's operation. */
export function operationsRoute(filter: OperationsFilter = {}): string {
  return `/operations${writeSearch(filter)}`;
}

/** Returns the route of an interrupt of a thread in the inbox. */
export function interruptRoute({ thread, tenant }: ThreadPlace, interrupt: string): string {
  return inboxRoute({ thread, interrupt, ...given({ of: tenant }) });
}

interface GoOptions {
  /** True if the route takes the place of the current one in the history. */
  replace: boolean;
}

/** Returns a function that goes to a route. */
export function useGo(): (route: string, options?: GoOptions) => void {
  const { history } = useRouter();
  return (route, { replace } = { replace: false }) => {
    if (replace) history.replace(publicPath(route));
    else history.push(publicPath(route));
  };
}

/** Goes to a route. Returns false if it does not. */
export type Go = (route: string, options?: GoOptions) => boolean;

/**
 * Returns a function that is called before something that takes time. It returns one that goes to a
 * route afterwards, unless the user has gone to another one meanwhile.
 */
export function useGoLater(): () => Go {
  const { history } = useRouter();
  const go = useGo();
  return () => {
    const { href } = history.location;
    return (route, options) => {
      if (history.location.href !== href) return false;
      go(route, options);
      return true;
    };
  };
}

/** Returns a function that goes to the current route with another value of a search parameter. */
export function useSetParameter(): (name: string, value: string) => void {
  const { history } = useRouter();
  return (name, value) => {
    const { pathname, search } = history.location;
    const params = new URLSearchParams(search);
    params.set(name, value);
    history.push(`${pathname}?${params}`);
  };
}

/** Returns the search parameters of the current route. */
export function useSearchOf<const C extends Checks>(checks: C): Search<C> {
  return readSearch(useLocation().searchStr, checks);
}

/** Returns a parameter in the path of the current route; an empty text if there is none. */
export function useParam(name: string): string {
  const params: unknown = useParams({ strict: false });
  const value: unknown = Object(params)[name];
  return typeof value === "string" ? value : "";
}

interface RouteLinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href" | "onClick"> {
  /** The route, as the functions above return it. */
  to: string;
  children: ReactNode;
}

/** A link to a view, which the browser can also open in another tab. */
export function RouteLink({ to, children, ...rest }: RouteLinkProps) {
  const go = useGo();
  return (
    <a
      {...rest}
      href={publicPath(to)}
      onClick={(event) => {
        if (!isPlain(event)) return;
        event.preventDefault();
        go(to);
      }}
    >
      {children}
    </a>
  );
}

/** Returns true for a click that the browser would follow in the same tab. */
function isPlain(event: MouseEvent): boolean {
  const isModified = event.metaKey || event.ctrlKey || event.shiftKey || event.altKey;
  return event.button === 0 && !isModified && !event.defaultPrevented;
}
