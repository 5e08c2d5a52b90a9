// The form of an edit: the channels to write, each with a form of its schema, and the node as which
// they are written.
import { useQuery } from "@tanstack/react-query";
import { Alert, Button, Segments, SelectField, toast } from "@wattle/page";
import { type FormEvent, useEffect, useMemo, useRef, useState } from "react";
import type { Schemas } from "../api/client.ts";
import { readThread } from "../api/thread.ts";
import type { GraphDocument } from "../graph/definition.ts";
import { Checkbox } from "../part/checkbox.tsx";
import { cut } from "../part/cut.ts";
import type { Checked } from "../part/schema-form/check.ts";
import { focusAt, rendered } from "../part/schema-form/focus.ts";
import { SchemaForm } from "../part/schema-form/form.tsx";
import { DESCRIPTION_CHARS } from "../part/schema-form/limits.ts";
import { Text, visible } from "../part/text.tsx";
import { type Go, useGoLater } from "../router/links.tsx";
import { Reading } from "../shell/failure.tsx";
import { useKeyHint } from "../shell/keys.tsx";
import { type Checkpoint, type GraphPlace, readCheckpoint } from "../state/read.ts";
import { Confirm, Refusal, useAction } from "./action.tsx";
import {
  AS_END,
  AS_INPUT,
  authorOf,
  type Channel,
  channelsFor,
  type Entry,
  editOf,
  entryOf,
  nodesOf,
  type Problems,
  readGraphOf,
  refusedChannel,
} from "./edit.ts";
import { sendEdit } from "./requests.ts";
import { EDIT } from "./texts.ts";
import styles from "./travel.module.css";

interface EditFormProps {
  place: GraphPlace;
  /** Number of the checkpoint, or `latest`. */
  checkpoint: string;
  /** Called with what goes to a route if the user has not left the view. */
  onEdited: (made: Checkpoint, go: Go) => void;
}

const NO_ERRORS: Checked["errors"] = new Map();

/** Reads what the form is made of. */
export default function EditForm({ place, checkpoint, onEdited }: EditFormProps) {
  const { thread, tenant, namespace } = place;
  const read = useQuery({
    queryKey: ["edited", thread, tenant, namespace, checkpoint],
    queryFn: async ({ signal }) => {
      const base = await readCheckpoint(place, checkpoint, signal);
      return { base, graph: await readGraphOf(await readThread(place), base) };
    },
    // What a user edits does not change. The host is asked again before the edit is sent.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const { data } = read;
  if (data !== undefined) return <Fields place={place} {...data} onEdited={onEdited} />;
  return <Reading of={read} text={EDIT.opening} />;
}

interface FieldsProps extends Pick<EditFormProps, "place" | "onEdited"> {
  base: Checkpoint;
  /** `null` if the host does not have the graph. */
  graph: GraphDocument | null;
}

/** An edit that a user is asked to confirm. */
interface Asked {
  readonly edit: Schemas["EditDocument"];
  /** The newest checkpoint of the graph. */
  readonly newest: Checkpoint;
}

function Fields({ place, base, graph, onEdited }: FieldsProps) {
  const box = useRef<HTMLFormElement>(null);
  const goLater = useGoLater();
  const channels = useMemo(() => channelsFor(graph ?? undefined, base.state), [graph, base]);
  const [author, setAuthor] = useState(() => authorOf(base));
  const [entries, setEntries] = useState<ReadonlyMap<string, Entry>>(new Map());
  const [problems, setProblems] = useState<Problems>(new Map());
  const [isIncomplete, setIncomplete] = useState(false);
  const [asked, setAsked] = useState<Asked>();
  const change = (name: string, entry: Entry | undefined) => {
    const next = new Map(entries);
    if (entry === undefined) next.delete(name);
    else next.set(name, entry);
    setEntries(next);
    setIncomplete(false);
    // A problem is shown when an edit is sent, and goes away when it is solved.
    if (problems.size > 0) setProblems(editOf(author, next).problems);
  };
  const asking = useAction(async (edit: Schemas["EditDocument"]) => {
    const newest = await readCheckpoint(place, "latest", AbortSignal.timeout(READ_MS));
    setAsked({ edit, newest });
  });
  const sending = useAction(async () => {
    if (asked === undefined) return;
    const go = goLater();
    const made = await sendEdit(place, base.id, asked.edit);
    setAsked(undefined);
    toast(EDIT.made(made.id));
    onEdited(made, go);
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const { edit, problems: found } = editOf(author, entries);
    setProblems(found);
    const isEmpty = author === "" || (author !== AS_END && entries.size === 0);
    setIncomplete(isEmpty);
    const [first] = found;
    if (first !== undefined) rendered(() => focusChannel(box.current, first));
    else if (!isEmpty) asking.act(edit);
  };
  const refused = refusedChannel(sending.refusal);
  useKeyHint("Ctrl+Enter", EDIT.sendKeys);
  useEffect(() => box.current?.querySelector<HTMLElement>("select")?.focus(), []);
  return (
    <form
      ref={box}
      className={styles.form}
      aria-label={EDIT.form}
      noValidate
      onSubmit={submit}
      onKeyDown={(event) => {
        const isSent = event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.repeat;
        if (!isSent) return;
        event.preventDefault();
        event.currentTarget.requestSubmit();
      }}
    >
      <p className="w-note">{EDIT.note(base.id)}</p>
      {graph === null && <Alert kind="warning">{EDIT.noGraph}</Alert>}
      <SelectField
        label={EDIT.author}
        value={author}
        options={optionsOf(graph, base)}
        onChange={setAuthor}
      />
      <p className="w-note">{authorNote(author)}</p>
      {author !== AS_END && (
        <ul className={styles.channels} aria-label={EDIT.channels}>
          {channels.map((channel) => (
            <ChannelPart
              key={channel.name}
              channel={channel}
              entry={entries.get(channel.name)}
              errors={problems.get(channel.name) ?? NO_ERRORS}
              isRefused={channel.name === refused}
              onEntry={(entry) => change(channel.name, entry)}
            />
          ))}
        </ul>
      )}
      {isIncomplete && <Alert>{author === "" ? EDIT.noAuthor : EDIT.noChannel}</Alert>}
      {problems.size > 0 && <Alert>{EDIT.problems}</Alert>}
      <Refusal error={asking.refusal ?? (asked === undefined ? sending.refusal : undefined)} />
      <Button type="submit" kind="primary" busy={asking.isBusy}>
        {EDIT.review}
      </Button>
      <Confirm
        open={asked !== undefined}
        title={EDIT.title}
        name={EDIT.write}
        action={sending}
        onClose={() => setAsked(undefined)}
      >
        {asked !== undefined && <Review base={base} {...asked} />}
      </Confirm>
    </form>
  );
}

/** Time after which the newest checkpoint is not waited for any longer, in milliseconds. */
const READ_MS = 30_000;

/** Gives the focus to the first problem of a channel. */
function focusChannel(
  form: HTMLElement | null,
  [name, errors]: readonly [string, Checked["errors"]],
): void {
  const channel = form?.querySelector<HTMLElement>(`[data-edited="${CSS.escape(name)}"]`);
  const [path = ""] = errors.keys();
  focusAt(channel ?? null, path);
}

function optionsOf(graph: GraphDocument | null, base: Checkpoint) {
  const nodes = nodesOf(graph ?? undefined, base);
  return [
    { value: "", name: EDIT.choose },
    ...nodes.map((value) => ({ value, name: visible(value) })),
    { value: AS_INPUT, name: EDIT.asInput },
    { value: AS_END, name: EDIT.asEnd },
  ];
}

function authorNote(author: string): string {
  if (author === AS_END) return EDIT.endNote;
  return author === AS_INPUT ? EDIT.inputNote : EDIT.nodeNote;
}

interface ChannelPartProps {
  channel: Channel;
  /** `undefined` if the channel is not written. */
  entry: Entry | undefined;
  errors: Checked["errors"];
  /** True if the host refused the value. */
  isRefused: boolean;
  onEntry: (entry: Entry | undefined) => void;
}

function ChannelPart({ channel, entry, errors, isRefused, onEntry }: ChannelPartProps) {
  const { name, doc, reducer } = channel;
  return (
    <li data-edited={name} data-refused={isRefused}>
      <Checkbox
        checked={entry !== undefined}
        onChange={(isWritten) => onEntry(isWritten ? entryOf(channel) : undefined)}
      >
        <Text>{name}</Text>
      </Checkbox>
      {doc !== "" && <p className="w-note">{cut(doc, DESCRIPTION_CHARS)}</p>}
      {entry !== undefined && (
        <div className={styles.part}>
          {reducer !== undefined && (
            <Segments
              label={EDIT.mode}
              options={[
                { value: "replace", name: EDIT.replace },
                { value: "combine", name: EDIT.combine(visible(reducer)) },
              ]}
              value={entry.mode}
              onChange={(mode) => onEntry(entryOf(channel, mode))}
            />
          )}
          {entry.isTooLong && <p>{EDIT.tooLong}</p>}
          <SchemaForm
            field={entry.field}
            draft={entry.draft}
            onDraft={(draft) => onEntry({ ...entry, draft })}
            errors={errors}
            label={name}
          />
        </div>
      )}
    </li>
  );
}

/** What the edit does, before it is confirmed. */
function Review({ base, edit, newest }: Asked & { base: Checkpoint }) {
  const { as_node, values = {}, overwrite = [] } = edit;
  const names = Object.keys(values);
  return (
    <div className={styles.part}>
      <p>{EDIT.reviewNote(base.id, visible(authorName(as_node ?? "")))}</p>
      {names.length > 0 && (
        <ul aria-label={EDIT.channels}>
          {names.map((name) => (
            <li key={name}>
              <Text>{name}</Text>: {overwrite.includes(name) ? EDIT.replaces : EDIT.combines}
            </li>
          ))}
        </ul>
      )}
      <p>{EDIT.discards}</p>
      {newest.id !== base.id && <Alert kind="warning">{EDIT.notNewest(base.id, newest.id)}</Alert>}
    </div>
  );
}

function authorName(author: string): string {
  if (author === AS_INPUT) return EDIT.asInput;
  return author === AS_END ? EDIT.asEnd : author;
}
