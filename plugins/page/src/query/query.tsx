// Data that a page reads from its server.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";

/** The banner shows a lost connection, and its return reads everything again. */
const QUERIES = { retry: false, networkMode: "always", refetchOnReconnect: true } as const;

/** Provides the queries of a page, which are read again when the connection is restored. */
export function Queries({ children }: { children: ReactNode }) {
  const [client] = useState(() => new QueryClient({ defaultOptions: { queries: QUERIES } }));
  return <QueryClientProvider client={client}>{children}</QueryClientProvider>;
}
