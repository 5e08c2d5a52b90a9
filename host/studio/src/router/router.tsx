// The router of the studio, made of the features.
import {
  createRootRoute,
  createRoute,
  createRouter,
  type RouterHistory,
} from "@tanstack/react-router";
import { Frame } from "../shell/frame.tsx";
import { NotFoundPage, PageError } from "../shell/problem.tsx";
import { basepath } from "./base.ts";
import { FEATURES } from "./features.ts";
import { parseSearch, stringifySearch } from "./search.ts";

/** Creates the router. Without `history`, it is that of the browser. */
export function createStudioRouter(history?: RouterHistory) {
  const root = createRootRoute({ component: Frame, notFoundComponent: NotFoundPage });
  const routes = FEATURES.map(({ path, page }) =>
    createRoute({ getParentRoute: () => root, path, component: page }),
  );
  return createRouter({
    routeTree: root.addChildren(routes),
    basepath: basepath(),
    parseSearch,
    stringifySearch,
    defaultNotFoundComponent: NotFoundPage,
    defaultErrorComponent: PageError,
    ...(history === undefined ? {} : { history }),
  });
}
