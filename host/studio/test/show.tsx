// Shows views of the studio, as its router does.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createMemoryHistory, type RouterHistory, RouterProvider } from "@tanstack/react-router";
import { render } from "@testing-library/react";
import { AccessProvider } from "../src/access/access.tsx";
import type { Access } from "../src/access/scope.ts";
import { FEATURES } from "../src/router/features.ts";
import { createStudioRouter } from "../src/router/router.tsx";
import { accessOf } from "./host.ts";

// On a busy machine, loading a module may take longer than a test waits for what a view shows.
await Promise.all([
  ...FEATURES.map(({ page }) => page.preload?.()),
  import("../src/graph/run-graph.tsx"),
  import("../src/travel/edit-form.tsx"),
]);

/** A view that is shown. */
interface Shown {
  history: RouterHistory;
  /** Reads again what the view shows, and returns when the view has been notified. */
  readAgain: () => Promise<void>;
}

/** Shows the studio at a route. */
export function show(route: string, access: Partial<Access> = {}): Shown {
  const history = createMemoryHistory({ initialEntries: [route] });
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <QueryClientProvider client={client}>
      <AccessProvider access={accessOf(access)}>
        <RouterProvider router={createStudioRouter(history)} />
      </AccessProvider>
    </QueryClientProvider>,
  );
  const readAgain = async () => {
    await client.refetchQueries();
    // TanStack Query notifies the view in a timer without delay. Such timers run in order.
    await new Promise<void>((resolve) => {
      setTimeout(resolve);
    });
  };
  return { history, readAgain };
}
