// A list that is read in pages, with what is known of the rows that were not read.
import { Button } from "@wattle/page";
import { type ReactNode, useEffect, useEffectEvent } from "react";
import type { List, Order } from "../../api/pages.ts";
import { Reading } from "../../shell/failure.tsx";
import { type Column, VirtualList } from "../virtual-list.tsx";
import { useChanged } from "./changed.ts";
import styles from "./paged-list.module.css";
import { TEXTS } from "./texts.ts";

interface PagedListProps<R> {
  list: List<R>;
  order: Order<R>;
  columns: readonly Column<R>[];
  texts: ListTexts;
  /** What is shown if the list is empty. */
  none: ReactNode;
}

/** What a list says about its rows. */
export interface ListTexts {
  /** Name of the list. */
  list: string;
  reading: string;
  /** The host examines older rows and has found none so far. */
  searching: string;
  /** The list examines no further rows before a user asks for it. */
  stopped: string;
}

/** A list whose rows are marked for a moment when they are new or have changed. */
export function PagedList<R>({ list, order, columns, texts, none }: PagedListProps<R>) {
  const { rows, isComplete, error, retry, more, onView } = list;
  const changed = useChanged(rows, order);
  return (
    <>
      <Reading of={{ error, data: rows, refetch: retry }} text={texts.reading} />
      {rows?.length === 0 && isComplete && none}
      {rows !== undefined && rows.length > 0 && (
        <VirtualList
          label={texts.list}
          columns={columns}
          rows={rows}
          rowKey={order.id}
          isMarked={(row) => changed.has(order.id(row))}
          isComplete={isComplete}
          onEnd={more}
          onView={onView}
        />
      )}
      <Rest list={list} texts={texts} />
    </>
  );
}

/** What is known of the rows after the last one, if the host has not examined all of them. */
function Rest<R>({ list, texts }: Pick<PagedListProps<R>, "list" | "texts">) {
  const { rows, isComplete, isStopped, more } = list;
  if (rows === undefined || isComplete) return null;
  if (!isStopped) {
    return rows.length === 0 ? <Searching text={texts.searching} onShown={more} /> : null;
  }
  return (
    <p className={styles.rest}>
      {texts.stopped} <Button onClick={more}>{TEXTS.further}</Button>
    </p>
  );
}

/** Says that older rows are searched, and begins with it. */
function Searching({ text, onShown }: { text: string; onShown: () => void }) {
  const begin = useEffectEvent(onShown);
  useEffect(() => begin(), []);
  return <p role="status">{text}</p>;
}
