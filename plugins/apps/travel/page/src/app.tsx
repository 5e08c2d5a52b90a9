// The page: its start, or a session.
import { Home } from "./home.tsx";
import { useRoute } from "./route.ts";
import { SessionPage } from "./session-page.tsx";

/** Shows what the URL selects. */
export function App() {
  const route = useRoute();
  if (route.at === "home") return <Home />;
  return <SessionPage key={route.id} id={route.id} initial={route.initial} />;
}
