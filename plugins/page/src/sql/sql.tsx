// Highlighted SQL. Load it after the first view: `later(() => import("@wattle/page/sql"))`.
//
// The highlighter only splits the text; React creates the elements, so nothing in it is markup.
import type { Token, TokenStream } from "prismjs";
import { Fragment, type ReactNode } from "react";
import "./manual.ts";
import Prism from "prismjs/components/prism-core";
import "prismjs/components/prism-sql";
import "./sql.css";

function shown(part: string | Token | TokenStream, key: number): ReactNode {
  if (typeof part === "string") return <Fragment key={key}>{part}</Fragment>;
  if (Array.isArray(part)) return <Fragment key={key}>{part.map(shown)}</Fragment>;
  const content = Array.isArray(part.content) ? part.content.map(shown) : shown(part.content, 0);
  return (
    <span key={key} className={`w-sql-${part.type}`}>
      {content}
    </span>
  );
}

/** A highlighted statement. */
export function Sql({ children, label = "SQL" }: { children: string; label?: string }) {
  const { sql } = Prism.languages;
  if (sql === undefined) throw new Error("the grammar of SQL is not loaded");
  return (
    // biome-ignore lint/a11y/useSemanticElements: a statement, not a set of fields.
    <pre className="w-sql" role="group" tabIndex={0} aria-label={label}>
      <code>{Prism.tokenize(children, sql).map(shown)}</code>
    </pre>
  );
}

export default Sql;
