// The frame of a page.
import { type ReactNode, StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { ErrorBoundary, PageFailure } from "../boundary/boundary.tsx";
import { Banner } from "../connection/connection.tsx";
import { useTexts } from "../language/language.ts";
import { Queries } from "../query/query.tsx";
import { ThemeToggle } from "../theme/theme.tsx";
import { Toasts } from "../toast/toast.tsx";
import "./shell.css";

interface ShellProps {
  /** Name of the page, in its header and its tab. */
  title: string;
  /** Title of the tab, if it is not the title of the page. */
  tab?: string;
  /** Actions in the header, before the theme. */
  actions?: ReactNode;
  /** Navigation between the header and the main part. */
  nav?: ReactNode;
  /** `fixed`: as tall as the window, so that parts scroll; `flow`: as tall as its content. */
  layout?: "fixed" | "flow";
  children: ReactNode;
}

/** Header, navigation, banner, main part and notices. */
export function Shell(props: ShellProps) {
  const { title, tab = title, actions, nav, layout = "flow", children } = props;
  const texts = useTexts();
  useEffect(() => {
    document.title = tab;
  }, [tab]);
  return (
    <div className="w-shell" data-layout={layout}>
      {/* biome-ignore lint/a11y/useValidAnchor: it goes to a place, and the base address hides it. */}
      <a className="w-skip" href="#main" onClick={skip}>
        {texts.skip}
      </a>
      <header className="w-header">
        <h1>{title}</h1>
        <div className="w-actions">
          {actions}
          <ThemeToggle />
        </div>
      </header>
      {nav}
      <Banner />
      <main className="w-main" id="main" tabIndex={-1}>
        {children}
      </main>
      <Toasts />
    </div>
  );
}

/** Moves the focus. The document has a base URL, so the link itself would leave the page. */
function skip(event: { preventDefault(): void }) {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

/** A part of the page with a heading. */
export function Panel({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="w-panel" aria-label={title}>
      <header>
        <h2>{title}</h2>
      </header>
      {children}
    </section>
  );
}

/**
 * Renders a page into the element `root` of the entry document, with a client for its queries. If
 * the page cannot be rendered, a message and a button to reload it are shown.
 */
export function showPage(page: ReactNode): void {
  const place = document.getElementById("root");
  if (place === null) throw new Error("the entry document has no element `root`");
  createRoot(place).render(
    <StrictMode>
      <ErrorBoundary fallback={<PageFailure />}>
        <Queries>{page}</Queries>
      </ErrorBoundary>
    </StrictMode>,
  );
}
