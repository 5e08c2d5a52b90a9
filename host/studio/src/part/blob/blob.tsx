// The blobs that a document refers to. One is read when a user asks for it, since it may be large.
import { useQuery } from "@tanstack/react-query";
import { Button, saveFile } from "@wattle/page";
import { useEffect, useState } from "react";
import { LARGE_AND_FIXED } from "../../api/large.ts";
import { Reading } from "../../shell/failure.tsx";
import { Refusal, useAttempt } from "../attempt.tsx";
import { digestText } from "../digest.ts";
import { visible } from "../text.tsx";
import styles from "./blob.module.css";
import {
  type BlobContent,
  type BlobPlace,
  endingOf,
  type ImageContent,
  mediaTypeOf,
  type PlayedContent,
  readContent,
  readFile,
} from "./content.ts";
import { blobsIn, LISTED_BLOBS } from "./references.ts";
import { TEXTS } from "./texts.ts";

/** Characters of a text that are shown at first, and that each further step shows. */
const FIRST_CHARS = 4_000;
const CHARS_STEP = 200_000;

/** The type of a downloaded file, so that no browser opens it as a page or a document. */
const FILE_TYPE = "application/octet-stream";

interface BlobsProps extends Pick<BlobPlace, "thread" | "tenant"> {
  /** The document, in which the references are looked for. */
  value: unknown;
}

/** The blobs of a document; nothing if it refers to none. */
export function Blobs({ thread, tenant, value }: BlobsProps) {
  const digests = blobsIn(value);
  if (digests.length === 0) return null;
  return (
    <section className={styles.blobs} aria-label={TEXTS.blobs}>
      <h4>{TEXTS.blobs}</h4>
      {digests.map((digest) => (
        <BlobItem key={digest} place={{ thread, tenant, digest }} />
      ))}
      {digests.length === LISTED_BLOBS && <p>{TEXTS.listed(LISTED_BLOBS)}</p>}
    </section>
  );
}

function BlobItem({ place }: { place: BlobPlace }) {
  const [isOpen, setOpen] = useState(false);
  const name = digestText(place.digest);
  const saving = useAttempt(async () => {
    const file = await readFile(place);
    saveFile(`blob-${name}${endingOf(mediaTypeOf(file.type))}`, file, FILE_TYPE);
  });
  return (
    <div className={styles.blob}>
      <div className={styles.actions}>
        <Button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? TEXTS.hide(name) : TEXTS.show(name)}
        </Button>
        <Button busy={saving.isBusy} onClick={saving.act}>
          {TEXTS.download(name)}
        </Button>
      </div>
      <Refusal error={saving.refusal} />
      {isOpen && <Content place={place} />}
    </div>
  );
}

function Content({ place }: { place: BlobPlace }) {
  const { thread, tenant, digest } = place;
  const read = useQuery({
    queryKey: ["blob", thread, tenant, digest],
    queryFn: ({ signal }) => readContent(place, signal),
    // The content of a digest does not change.
    ...LARGE_AND_FIXED,
    // Bytes are compared by nobody.
    structuralSharing: false,
  });
  const { data } = read;
  if (data !== undefined) return <Shown content={data} name={digestText(digest)} />;
  return <Reading of={read} text={TEXTS.reading} />;
}

function Shown({ content, name }: { content: BlobContent; name: string }) {
  switch (content.kind) {
    case "image":
      return <Picture {...content} name={name} />;
    case "audio":
    case "video":
      return <Player {...content} name={name} />;
    case "text":
      return <TextContent text={content.text} name={name} />;
    default:
      return <p>{TEXTS.file(visible(content.mediaType))}</p>;
  }
}

interface PictureProps extends ImageContent {
  name: string;
}

/** An image, once the browser has decoded it as what its media type says. */
function Picture({ bytes, mediaType, name }: PictureProps) {
  const [url, setUrl] = useState<string>();
  const [isBroken, setBroken] = useState(false);
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type: mediaType }));
    let isOver = false;
    const image = new Image();
    image.src = made;
    image.decode().then(
      () => isOver || setUrl(made),
      () => isOver || setBroken(true),
    );
    return () => {
      isOver = true;
      URL.revokeObjectURL(made);
    };
  }, [bytes, mediaType]);
  if (isBroken) return <p>{TEXTS.broken}</p>;
  if (url === undefined) return <p role="status">{TEXTS.reading}</p>;
  return <img className={styles.image} src={url} alt={TEXTS.blob(name)} />;
}

interface PlayerProps extends PlayedContent {
  name: string;
}

/**
 * A sound or a video, which a user starts. Browsers also look at the bytes for its format. A playlist
 * reads nothing, since the Content-Security-Policy of the page permits media from `blob:` alone.
 */
function Player({ kind: Tag, bytes, mediaType, name }: PlayerProps) {
  const [url, setUrl] = useState<string>();
  const [isBroken, setBroken] = useState(false);
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type: mediaType }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes, mediaType]);
  if (isBroken) return <p>{TEXTS.unplayable}</p>;
  if (url === undefined) return <p role="status">{TEXTS.reading}</p>;
  return (
    <Tag
      className={styles.player}
      src={url}
      controls
      aria-label={TEXTS.blob(name)}
      onError={() => setBroken(true)}
    />
  );
}

function TextContent({ text, name }: { text: string; name: string }) {
  const [most, setMost] = useState(FIRST_CHARS);
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a text, not a set of fields. */}
      <pre className={styles.text} role="group" aria-label={TEXTS.blob(name)} tabIndex={0}>
        {visible(text.slice(0, most))}
      </pre>
      {text.length > most && (
        <Button onClick={() => setMost(most + CHARS_STEP)}>{TEXTS.more}</Button>
      )}
    </>
  );
}
