// A statement, highlighted once the highlighter is loaded.
import { ErrorBoundary, later } from "@wattle/page";
import { Suspense } from "react";

const Sql = later(() => import("@wattle/page/sql"));

export function Statement({ sql, label = "SQL" }: { sql: string; label?: string }) {
  const plain = (
    // biome-ignore lint/a11y/useSemanticElements: a statement, not a set of fields.
    <pre className="w-sql" role="group" tabIndex={0} aria-label={label}>
      <code>{sql}</code>
    </pre>
  );
  return (
    <ErrorBoundary fallback={plain}>
      <Suspense fallback={plain}>
        <Sql label={label}>{sql}</Sql>
      </Suspense>
    </ErrorBoundary>
  );
}
