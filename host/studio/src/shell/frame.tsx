// The frame around every view.
import { Outlet, useLocation } from "@tanstack/react-router";
import { Button, Shell } from "@wattle/page";
import { useEffect, useRef, useState } from "react";
import { useAccess } from "../access/access.tsx";
import { leave } from "../access/key.ts";
import { visible } from "../part/text.tsx";
import { Keyboard } from "./keys.tsx";
import { Nav } from "./nav.tsx";
import styles from "./shell.module.css";
import { TenantGate } from "./tenant.tsx";
import { TEXTS } from "./texts.ts";
import { TitleContext } from "./title.ts";
import { UpgradeNotice } from "./upgrade.tsx";

/** Header, navigation and the view of the current route. */
export function Frame() {
  const [title, setTitle] = useState("");
  useFocusOfView();
  return (
    <TitleContext value={setTitle}>
      <Shell
        title={TEXTS.studio}
        tab={TEXTS.tab(title)}
        layout="fixed"
        nav={<Nav />}
        actions={<Who />}
      >
        <UpgradeNotice />
        <TenantGate>
          <Outlet />
        </TenantGate>
      </Shell>
      <Keyboard />
    </TitleContext>
  );
}

/** Moves the focus to the main part when the path changes, so that screen readers start there. */
function useFocusOfView(): void {
  const { pathname } = useLocation();
  const before = useRef(pathname);
  useEffect(() => {
    if (before.current !== pathname) document.getElementById("main")?.focus();
    before.current = pathname;
  }, [pathname]);
}

/** Whose access the studio uses, with the way out. */
function Who() {
  const { key, scope, tenant, user } = useAccess();
  const facts = [
    ...(user == null ? [] : [TEXTS.user(user)]),
    ...(tenant == null ? [] : [TEXTS.tenant(tenant)]),
    ...(key == null ? [] : [key.name ?? key.id, TEXTS.scopes[scope]]),
  ];
  return (
    <>
      {facts.length > 0 && <span className={styles.who}>{visible(facts.join(" · "))}</span>}
      {key != null && <Button onClick={leave}>{TEXTS.logOut}</Button>}
    </>
  );
}
