// The host calls of a plugin that were denied, with what would allow them and the run of each.
import { CopyButton } from "../part/copy-button.tsx";
import { grantIn, grantText } from "../part/grant.ts";
import { Text } from "../part/text.tsx";
import { ThreadLink } from "../part/thread-link.tsx";
import { Time } from "../part/time.tsx";
import { runRoute } from "../router/links.tsx";
import styles from "./plugins.module.css";
import type { Plugin } from "./read.ts";
import { DENIALS } from "./texts.ts";

type Denial = NonNullable<Plugin["use"]["denials"]>[number];

/** The newest denied calls; nothing without any. */
export function Denials({ denials = [] }: { denials: readonly Denial[] | undefined }) {
  if (denials.length === 0) return null;
  return (
    <section aria-label={DENIALS.title}>
      <h4>{DENIALS.title}</h4>
      <ul className={styles.denials}>
        {denials.map((denial, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a denied call has no other name.
          <li key={index}>
            <DeniedCall denial={denial} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function DeniedCall({ denial }: { denial: Denial }) {
  const { at_ms, function: name, message, thread, run } = denial;
  const tenant = denial.tenant ?? undefined;
  const grant = grantIn(message);
  const lines = grant && grantText(grant);
  return (
    <>
      <p className={styles.line}>
        <code>
          <Text>{name}</Text>
        </code>
        <Time ms={at_ms} />
        {thread != null && run != null && (
          <ThreadLink to={runRoute({ thread, run, tenant })} tenant={tenant}>
            {DENIALS.run}
          </ThreadLink>
        )}
      </p>
      {lines === undefined ? (
        <p className={styles.refusal}>
          <Text>{message}</Text>
        </p>
      ) : (
        <div className={styles.line}>
          <pre className={styles.manifest}>
            <Text>{lines}</Text>
          </pre>
          <CopyButton text={lines} />
        </div>
      )}
    </>
  );
}
