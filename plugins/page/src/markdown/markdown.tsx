// Text of models as Markdown, without anything that could act on the page: markup is shown as text,
// links open in a new window, and images of other origins become links.
import { memo, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { useTexts } from "../language/language.ts";
import "./markdown.css";

/** Returns true for an image of this page's own origin, or from inside of the page. */
export function isOwn(src: string): boolean {
  try {
    const { origin, protocol } = new URL(src, document.baseURI);
    return origin === location.origin || protocol === "blob:";
  } catch {
    return false;
  }
}

const COMPONENTS: Components = {
  a: ({ href, children, title }) =>
    href ? (
      <a href={href} title={title} target="_blank" rel="noopener noreferrer">
        {children}
      </a>
    ) : (
      <span>{children}</span>
    ),
  img: ({ src, alt, title }) => {
    if (typeof src !== "string" || src === "") return <span>{alt}</span>;
    if (isOwn(src)) return <img src={src} alt={alt ?? ""} title={title} loading="lazy" />;
    return (
      <a href={src} title={title} target="_blank" rel="noopener noreferrer">
        {alt || src}
      </a>
    );
  },
  table: Table,
};

function Table({ children }: { children?: ReactNode }) {
  const texts = useTexts();
  return (
    // biome-ignore lint/a11y/useSemanticElements: a scrolling frame, not a set of fields.
    <div className="w-markdown-table" role="group" aria-label={texts.table} tabIndex={0}>
      <table>{children}</table>
    </div>
  );
}

const PLUGINS = [remarkGfm];

/** Markdown with tables, task lists and bare links. */
export const Markdown = memo(function Markdown({ children }: { children: string }) {
  return (
    <div className="w-markdown">
      <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
        {children}
      </ReactMarkdown>
    </div>
  );
});
