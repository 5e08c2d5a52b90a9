// The page: its start, or a session.
import { Home } from "./home.tsx";
import { useRoute } from "./route.ts";
import { SessionPage } from "./session-page.tsx";

/** What the address asks for. */
export function App() {
  const route = useRoute();
  if (route.at === "home") return <Home />;
  return <SessionPage key={route.id} id={route.id} initial={route.initial} />;
}
