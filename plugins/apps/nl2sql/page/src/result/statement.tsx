// A statement, highlighted once the highlighter is loaded.
import { later } from "@wattle/page";
import { Component, type ReactNode, Suspense } from "react";

const Sql = later(() => import("@wattle/page/sql"));

function Plain({ sql, label }: { sql: string; label: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a statement, not a set of fields.
    <pre className="w-sql" role="group" tabIndex={0} aria-label={label}>
      <code>{sql}</code>
    </pre>
  );
}

/** Shows a replacement if a part cannot be loaded. */
export class Otherwise extends Component<{ show: ReactNode; children: ReactNode }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    return this.state.hasFailed ? this.props.show : this.props.children;
  }
}

export function Statement({ sql, label = "SQL" }: { sql: string; label?: string }) {
  const plain = <Plain sql={sql} label={label} />;
  return (
    <Otherwise show={plain}>
      <Suspense fallback={plain}>
        <Sql label={label}>{sql}</Sql>
      </Suspense>
    </Otherwise>
  );
}
