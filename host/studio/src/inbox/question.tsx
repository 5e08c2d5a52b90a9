// The selected interrupt: what it asks, where, and the answer to it.
import { Announce } from "@wattle/page";
import { useAccess } from "../access/access.tsx";
import { may } from "../access/scope.ts";
import { type Fact, Facts, textFact, timeFact } from "../part/facts.tsx";
import type { Draft } from "../part/schema-form/draft.ts";
import { Text } from "../part/text.tsx";
import { ThreadLink } from "../part/thread-link.tsx";
import { threadRoute } from "../router/links.tsx";
import { AnswerForm } from "./answer.tsx";
import { keyOf } from "./filter.ts";
import styles from "./inbox.module.css";
import type { InboxItem } from "./item.ts";
import { Document, textIn, titleOf } from "./payload.tsx";
import { TEXTS } from "./texts.ts";

interface QuestionProps {
  item: InboxItem;
  kept: Map<string, Draft>;
  onSend: () => () => void;
  onConflict: () => Promise<boolean>;
}

/** An interrupt with its form. */
export function QuestionView({ item, kept, onSend, onConflict }: QuestionProps) {
  const access = useAccess();
  const { payload, node } = item.interrupt;
  const title = titleOf(payload, node);
  const key = keyOf(item);
  return (
    <section className={styles.question} aria-label={TEXTS.question} data-thread={item.thread_id}>
      <h3 className={styles.heading}>
        <Text>{title}</Text>
      </h3>
      <Announce>{title}</Announce>
      <Document label={TEXTS.payload} value={payload} />
      {may(access, "write") ? (
        <AnswerForm
          key={key}
          item={item}
          kept={kept}
          keptKey={key}
          onSend={onSend}
          onConflict={onConflict}
        />
      ) : (
        <p className="w-note">{TEXTS.readOnly}</p>
      )}
      <Facts facts={factsOf(item)} />
    </section>
  );
}

function factsOf({ thread_id, app, graph, tenant, interrupt }: InboxItem): Fact[] {
  const { node, namespace, asked_ms, expires_ms, payload } = interrupt;
  return [
    [
      TEXTS.thread,
      <ThreadLink key="thread" to={threadRoute(thread_id, tenant ?? undefined)} tenant={tenant}>
        <Text>{thread_id}</Text>
      </ThreadLink>,
    ],
    [TEXTS.graph, textFact(`${app} / ${graph}`)],
    [TEXTS.node, textFact(namespace ? `${namespace} / ${node}` : node)],
    [TEXTS.tenant, textFact(tenant)],
    [TEXTS.server, textFact(textIn(payload, "server"))],
    [TEXTS.tool, textFact(textIn(payload, "tool"))],
    [TEXTS.asked, timeFact(asked_ms)],
    [TEXTS.expires, timeFact(expires_ms)],
  ];
}
