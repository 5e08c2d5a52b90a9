// Progress of the graph, node by node.
import styles from "./add.module.css";
import type { Step } from "./parse.ts";

/** Lists the started nodes. The last one may still run. */
export function Progress({ steps }: { steps: readonly Step[] }) {
  return (
    <ol className={styles.progress} aria-label="处理进度">
      {steps.length === 0 && <li data-done={false}>正在开始</li>}
      {steps.map(({ node, message, isDone }) => (
        <li key={node} data-done={isDone} data-node={node}>
          {message}
        </li>
      ))}
    </ol>
  );
}
