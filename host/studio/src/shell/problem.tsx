// What is shown in place of a view that does not exist or cannot be rendered.
import { Alert, Button } from "@wattle/page";
import { toError } from "../api/error.ts";
import { RouteLink } from "../router/links.tsx";
import styles from "./shell.module.css";
import { TEXTS } from "./texts.ts";
import { useTitle } from "./title.ts";

/** Shown at an address without a view. */
export function NotFoundPage() {
  useTitle(TEXTS.notFound);
  return (
    <div className={styles.problem}>
      <h2>{TEXTS.notFound}</h2>
      <p>{TEXTS.notFoundHint}</p>
      <p>
        <RouteLink to="/">{TEXTS.home}</RouteLink>
      </p>
    </div>
  );
}

/** Shown in place of a view that threw an error. */
export function PageError({ error }: { error: unknown }) {
  return (
    <div className={styles.problem}>
      <h2>{TEXTS.failed}</h2>
      <Alert actions={<Button onClick={() => location.reload()}>{TEXTS.reload}</Button>}>
        {toError(error).message}
      </Alert>
    </div>
  );
}
