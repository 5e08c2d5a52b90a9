// What the graph is at, node by node.
import type { Step } from "./parse.ts";

/** The nodes that have begun, the last one at work. */
export function Progress({ steps }: { steps: readonly Step[] }) {
  return (
    <ol className="a-progress" aria-label="处理进度">
      {steps.length === 0 && <li data-done={false}>正在开始</li>}
      {steps.map(({ node, message, isDone }) => (
        <li key={node} data-done={isDone} data-node={node}>
          {message}
        </li>
      ))}
    </ol>
  );
}
