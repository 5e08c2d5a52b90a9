// The inbox: the pending interrupts of all threads, and the answer to the selected one.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Announce, Button } from "@wattle/page";
import { useEffect, useState } from "react";
import { useAccess } from "../access/access.tsx";
import { type List, usePagedList } from "../api/pages.ts";
import { None } from "../part/filters/none.tsx";
import type { Draft } from "../part/schema-form/draft.ts";
import { inboxRoute, RouteLink, useGo, useGoLater, useSearchOf } from "../router/links.tsx";
import { Reading } from "../shell/failure.tsx";
import { useShortcut } from "../shell/keys.tsx";
import { useTitle } from "../shell/title.ts";
import { numberText, takeOff, useCount, withoutItem } from "./count.ts";
import { conditionsOf, FILTER, type InboxFilter, keyIn, keyOf, withItem } from "./filter.ts";
import { InboxFilters } from "./filters.tsx";
import styles from "./inbox.module.css";
import type { InboxItem } from "./item.ts";
import { InboxList } from "./list.tsx";
import { OutcomeView } from "./outcome.tsx";
import { titleOf } from "./payload.tsx";
import { QuestionView } from "./question.tsx";
import { type Count, ORDER, type Place, readInbox, readItem, readOutcome } from "./read.ts";
import { TEXTS } from "./texts.ts";

/** Interval at which a selected interrupt that the list does not have is read, in milliseconds. */
const INTERVAL_MS = 2_000;

export default function InboxPage() {
  useTitle(TEXTS.title);
  const filter = useSearchOf(FILTER);
  const access = useAccess();
  const conditions = conditionsOf(filter);
  const list = usePagedList(["inbox", conditions, access.tenant_header], ORDER, (cursor) =>
    readInbox(conditions, access, cursor),
  );
  const count = useCount(list, conditions, access);
  const inbox = useInbox(list, count, filter);
  const { rows, selected } = inbox;
  return (
    <div className={styles.page} data-selected={selected !== undefined}>
      <h2 className="w-hidden">{TEXTS.title}</h2>
      <div className={styles.side}>
        <InboxFilters filter={filter} />
        <Reading
          of={{ error: list.error, data: rows, refetch: list.retry }}
          tenantNeeded={TEXTS.tenantNeeded}
          text={TEXTS.reading}
        />
        {rows?.length === 0 && list.isComplete && (
          <None
            isFiltered={Object.keys(conditions).length > 0}
            texts={TEXTS}
            cleared={inboxRoute()}
          />
        )}
        {rows !== undefined && rows.length > 0 && (
          <p className={styles.count}>
            {TEXTS.pending(numberText(rows.length, list.isComplete, count))}
          </p>
        )}
        {rows?.length === 0 && !list.isComplete && (
          <Button onClick={list.more}>{TEXTS.more}</Button>
        )}
        {rows !== undefined && (rows.length > 0 || !list.isComplete) && (
          <InboxList
            rows={rows}
            isComplete={list.isComplete}
            onEnd={list.more}
            onView={list.onView}
            filter={filter}
            selected={selected}
            focus={inbox.focus}
          />
        )}
      </div>
      <div className={styles.main}>
        <Announce>{inbox.said}</Announce>
        <Selected inbox={inbox} filter={filter} />
      </div>
    </div>
  );
}

interface Inbox {
  /** The rows without those that were answered here; `undefined` before the first page. */
  rows: readonly InboxItem[] | undefined;
  /** Key of the selected interrupt. */
  selected: string | undefined;
  /** Changes when the selected row gets the focus. */
  focus: number;
  /** What screen readers are told. */
  said: string;
  kept: Map<string, Draft>;
  /** Titles of interrupts that were shown, by their keys. */
  titles: Map<string, string>;
  /** Selects the next interrupt; absent if there is none. */
  onNext: (() => void) | undefined;
  /** Called when an answer is sent. Returns what is called when the host has taken it. */
  onSend: (item: InboxItem) => () => void;
  /** Removes an interrupt that is not pending any more. */
  onGone: (item: InboxItem) => void;
}

function useInbox(list: List<InboxItem>, count: Count | undefined, filter: InboxFilter): Inbox {
  const go = useGo();
  const goLater = useGoLater();
  const client = useQueryClient();
  const [kept] = useState(() => new Map<string, Draft>());
  const [titles] = useState(() => new Map<string, string>());
  const [focus, setFocus] = useState(0);
  const [said, setSaid] = useState("");
  // A page that was read before an answer may arrive after it. An interrupt that is asked again
  // has a later time.
  const [gone, setGone] = useState<ReadonlyMap<string, number>>(new Map());
  const rows = list.rows?.filter((row) => row.updated_ms > (gone.get(keyOf(row)) ?? -1));
  const { thread, interrupt } = filter;
  const selected =
    thread === undefined || interrupt === undefined ? undefined : keyIn(thread, interrupt);
  const at = rows?.findIndex((row) => keyOf(row) === selected) ?? -1;
  const move = (by: number) => {
    const item = rows?.[at < 0 ? 0 : at + by];
    if (item === undefined) return;
    go(inboxRoute(withItem(filter, item)), { replace: selected !== undefined });
    setFocus((before) => before + 1);
  };
  useShortcut("j", TEXTS.next, () => move(1));
  useShortcut("k", TEXTS.previous, () => move(-1));
  const remove = (item: InboxItem) => {
    kept.delete(keyOf(item));
    setGone((before) => new Map(before).set(keyOf(item), item.updated_ms));
    takeOff(client, item);
    void client.invalidateQueries({ queryKey: ["inbox"] });
  };
  const send = (item: InboxItem) => {
    const goOn = goLater();
    return () => {
      remove(item);
      const left = rows?.filter((row) => keyOf(row) !== keyOf(item)) ?? [];
      const rest = count && withoutItem(count, conditionsOf(filter), item);
      setSaid(TEXTS.sent(numberText(left.length, list.isComplete, rest)));
      const next = left[Math.min(Math.max(at, 0), left.length - 1)];
      const isNext = goOn(inboxRoute(withItem(filter, next)), { replace: true });
      if (isNext) setFocus((before) => before + 1);
    };
  };
  const hasOther = rows?.some((row) => keyOf(row) !== selected) ?? false;
  const onNext = hasOther
    ? () => move(at >= 0 && at === (rows?.length ?? 0) - 1 ? -1 : 1)
    : undefined;
  return {
    rows,
    selected,
    focus,
    said,
    kept,
    titles,
    onNext,
    onSend: send,
    onGone: remove,
  };
}

interface SelectedProps {
  inbox: Inbox;
  filter: InboxFilter;
}

/** The selected interrupt, which need not be in the part of the list that was read. */
function Selected({ inbox, filter }: SelectedProps) {
  const { thread, interrupt, of, tenant } = filter;
  if (thread === undefined || interrupt === undefined) {
    return inbox.rows?.length ? <p className={styles.hint}>{TEXTS.hint}</p> : null;
  }
  const item = inbox.rows?.find((row) => keyOf(row) === inbox.selected);
  const place = { thread, interrupt, tenant: of ?? tenant };
  const back = inboxRoute(conditionsOf(filter));
  return (
    <>
      <p className={styles.back}>
        <RouteLink to={back}>{TEXTS.back}</RouteLink>
      </p>
      {item === undefined ? (
        <Elsewhere key={inbox.selected} place={place} inbox={inbox} />
      ) : (
        <Open item={item} place={place} inbox={inbox} />
      )}
    </>
  );
}

interface OpenProps {
  item: InboxItem;
  place: Place;
  inbox: Inbox;
}

function Open({ item, place, inbox }: OpenProps) {
  const client = useQueryClient();
  const { payload, node } = item.interrupt;
  const [key, title] = [keyOf(item), titleOf(payload, node)];
  useEffect(() => {
    inbox.titles.set(key, title);
  }, [inbox.titles, key, title]);
  const onConflict = async () => {
    const outcome = await readOutcome(place);
    if (outcome.kind === "unknown") return false;
    client.setQueryData(["outcome", place], outcome);
    client.setQueryData(["interrupt", place], null);
    inbox.onGone(item);
    return true;
  };
  return (
    <QuestionView
      item={item}
      kept={inbox.kept}
      onSend={() => inbox.onSend(item)}
      onConflict={onConflict}
    />
  );
}

/** An interrupt that the list does not have: on a page that was not read, or not pending. */
function Elsewhere({ place, inbox }: Omit<OpenProps, "item">) {
  const read = useQuery({
    queryKey: ["interrupt", place],
    queryFn: async () => (await readItem(place)) ?? null,
    // An interrupt that is asked again is in the list.
    refetchInterval: ({ state }) => (state.data === null ? false : INTERVAL_MS),
  });
  const { data } = read;
  if (data === null) {
    const title = inbox.titles.get(keyIn(place.thread, place.interrupt));
    return <OutcomeView place={place} title={title} onNext={inbox.onNext} />;
  }
  if (data !== undefined) return <Open item={data} place={place} inbox={inbox} />;
  return <Reading of={read} tenantNeeded={TEXTS.tenantNeeded} text={TEXTS.reading} />;
}
