// The navigation: the features that the access permits.
import { useLocation } from "@tanstack/react-router";
import { useAccess } from "../access/access.tsx";
import { may } from "../access/scope.ts";
import { FEATURES, type NavEntry } from "../router/features.ts";
import { RouteLink, useGo } from "../router/links.tsx";
import { useShortcut } from "./keys.tsx";
import styles from "./shell.module.css";
import { TEXTS } from "./texts.ts";

/** The entries of the navigation. */
export function Nav() {
  const access = useAccess();
  const entries = FEATURES.flatMap(({ path, nav }) =>
    nav !== undefined && may(access, nav.need) ? [{ path, nav }] : [],
  );
  return (
    <nav className={styles.nav} aria-label={TEXTS.navigation}>
      <ul>
        {entries.map(({ path, nav }) => (
          <li key={path}>
            <Entry path={path} nav={nav} />
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Entry({ path, nav }: { path: string; nav: NavEntry }) {
  const { pathname } = useLocation();
  const go = useGo();
  useShortcut(nav.keys, TEXTS.goTo(nav.name), () => go(path));
  return (
    <RouteLink to={path} aria-current={isWithin(pathname, path) ? "page" : undefined}>
      {nav.name}
    </RouteLink>
  );
}

/** Returns true if a path is that of a feature, or of one of its views. */
function isWithin(pathname: string, path: string): boolean {
  if (path === "/") return pathname === "/";
  return pathname === path || pathname.startsWith(`${path}/`);
}
