// What a plugin requests beside what it is granted, with the lines that grant the rest.
import { Alert } from "@wattle/page";
import { CopyButton } from "../part/copy-button.tsx";
import { JsonTree } from "../part/json-tree.tsx";
import { Text, visible } from "../part/text.tsx";
import { permissionsOf, tomlOf } from "./grants.ts";
import styles from "./plugins.module.css";
import type { Plugin } from "./read.ts";
import { PAGE } from "./texts.ts";

/** The permissions of a plugin by kind, its limits, and notes for the operator. */
export function Permissions({ plugin }: { plugin: Plugin }) {
  const rows = permissionsOf(plugin);
  const { missing, notes, grants } = plugin;
  return (
    <>
      {notes.map((note) => (
        <Alert key={note}>
          <Text>{note}</Text>
        </Alert>
      ))}
      {rows.length === 0 ? (
        <p>{PAGE.noPermissions}</p>
      ) : (
        <table className={styles.permissions} aria-label={PAGE.permissions}>
          <thead>
            <tr>
              <th scope="col">{PAGE.permission}</th>
              <th scope="col">{PAGE.requested}</th>
              <th scope="col">{PAGE.granted}</th>
              <th scope="col">{PAGE.line}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.need}>
                <th scope="row">
                  <Text>{row.need}</Text>
                </th>
                <Rules name={PAGE.requested} rules={row.requested} />
                <Rules name={PAGE.granted} rules={row.granted} />
                <td data-name={PAGE.line}>
                  {row.missing.map((missing) => (
                    <Line key={missing.line} missing={missing} />
                  ))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {missing.length > 0 && <p className="w-note">{PAGE.lineNote}</p>}
      {grants.limits != null && (
        <details>
          <summary>{PAGE.limits}</summary>
          <JsonTree label={PAGE.limits} value={grants.limits} />
        </details>
      )}
    </>
  );
}

function Rules({ name, rules }: { name: string; rules: readonly string[] }) {
  return (
    <td data-name={name}>
      {rules.length > 0 && (
        <ul>
          {rules.map((rule) => (
            <li key={rule}>
              <Text>{rule}</Text>
            </li>
          ))}
        </ul>
      )}
    </td>
  );
}

/** A line of the configuration, which can be copied with its table. */
function Line({ missing }: { missing: Plugin["missing"][number] }) {
  const { line, table } = missing;
  return (
    <div className={styles.line}>
      <code className={styles.missing}>
        <Text>{line}</Text>
      </code>
      <span>
        <Text>{PAGE.in(table)}</Text>
      </span>
      <CopyButton text={tomlOf(missing)} name={PAGE.copyName(visible(line))} />
    </div>
  );
}
