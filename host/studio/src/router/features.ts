// The features of the studio, one entry each. A page that the first view does not need is loaded
// when it is opened.
import { lazyRouteComponent, type RouteComponent } from "@tanstack/react-router";
import type { Need } from "../access/scope.ts";
import { HomePage } from "../home/page.tsx";
import { ThreadsPage } from "../threads/page.tsx";

/** The entry of a feature in the navigation. */
export interface NavEntry {
  name: string;
  /** The keys that lead to it. */
  keys: string;
  /** What a key must permit for it to be shown. */
  need: Need;
}

export interface Feature {
  /** Path of the route, in which `$name` is a parameter. */
  path: string;
  page: RouteComponent;
  nav?: NavEntry;
  /** True for a view of threads, whose tenant the search parameter `tenant` names. */
  isOfThreads?: true;
}

export const FEATURES: readonly Feature[] = [
  { path: "/", page: HomePage, nav: { name: "Home", keys: "g h", need: "read" } },
  { path: "/threads", page: ThreadsPage, nav: { name: "Threads", keys: "g t", need: "read" } },
  {
    path: "/runs",
    page: lazyRouteComponent(() => import("../runs/page.tsx")),
    nav: { name: "Runs", keys: "g r", need: "read" },
  },
  {
    path: "/inbox",
    page: lazyRouteComponent(() => import("../inbox/page.tsx")),
    nav: { name: "Inbox", keys: "g i", need: "read" },
  },
  {
    path: "/operations",
    page: lazyRouteComponent(() => import("../operations/page.tsx")),
    nav: { name: "Operations", keys: "g o", need: "read" },
  },
  {
    path: "/threads/$thread",
    page: lazyRouteComponent(() => import("../thread/page.tsx")),
    isOfThreads: true,
  },
  {
    path: "/threads/$thread/runs/$run",
    page: lazyRouteComponent(() => import("../run/page.tsx")),
    isOfThreads: true,
  },
  {
    path: "/threads/$thread/checkpoints/$checkpoint",
    page: lazyRouteComponent(() => import("../state/page.tsx")),
    isOfThreads: true,
  },
  {
    path: "/compare",
    page: lazyRouteComponent(() => import("../travel/compare.tsx")),
    isOfThreads: true,
  },
  { path: "/apps/$app", page: lazyRouteComponent(() => import("../app/page.tsx")) },
  { path: "/apps/$app/play", page: lazyRouteComponent(() => import("../play/page.tsx")) },
  {
    path: "/apps/$app/graphs/$graph",
    page: lazyRouteComponent(() => import("../graph/page.tsx")),
  },
  {
    path: "/plugins",
    page: lazyRouteComponent(() => import("../plugins/page.tsx")),
    nav: { name: "Plugins", keys: "g p", need: "operator" },
  },
  { path: "/plugins/$plugin", page: lazyRouteComponent(() => import("../plugins/plugin.tsx")) },
  {
    path: "/plugins/$plugin/play",
    page: lazyRouteComponent(() => import("../play/plugin-page.tsx")),
  },
  {
    path: "/models",
    page: lazyRouteComponent(() => import("../models/page.tsx")),
    nav: { name: "Models", keys: "g m", need: "operator" },
  },
];
