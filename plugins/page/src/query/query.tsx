// Data that a page reads from its server.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useConnection } from "../connection/connection.tsx";

function newClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        // The banner shows a lost connection, and its return reads everything again.
        retry: false,
        // Browsers know the network, but not whether a server on the same machine is reachable.
        networkMode: "always",
      },
    },
  });
}

/** Provides the queries of a page, which are read again when the connection is restored. */
export function Queries({ children }: { children: ReactNode }) {
  const [client] = useState(newClient);
  useConnection(() => void client.invalidateQueries());
  return <QueryClientProvider client={client}>{children}</QueryClientProvider>;
}
