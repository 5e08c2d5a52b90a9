// Files that a user adds by button, by paste or by drop, with previews.
import { type ClipboardEvent, type DragEvent, useEffect, useRef, useState } from "react";
import { texts, useTexts } from "../language/language.ts";
import { toast } from "../toast/toast.tsx";
import "./chat.css";

/** A file that was added. */
export interface Attachment {
  id: number;
  file: File;
  /** URL of the preview, for images. */
  preview: string | undefined;
}

interface FilesOptions {
  /** Accepted files, as in the attribute `accept` of an input: `image/*` or `.csv`. */
  accept: string;
  /** Maximum size of one file. */
  maxBytes: number;
  /** Maximum number of files; 1 by default. A further file replaces the first one. */
  most?: number;
}

/** The added files, and the functions that change them. */
export interface Files {
  accept: string;
  most: number;
  items: readonly Attachment[];
  add: (files: Iterable<File>) => void;
  remove: (id: number) => void;
  clear: () => void;
  onPaste: (event: ClipboardEvent) => void;
  dropProps: {
    "data-drop": boolean;
    onDragOver: (event: DragEvent) => void;
    onDragLeave: (event: DragEvent) => void;
    onDrop: (event: DragEvent) => void;
  };
}

/** Returns true if `accept` permits a file. */
export function isAccepted(file: { name: string; type: string }, accept: string): boolean {
  return accept.split(",").some((entry) => {
    const rule = entry.trim().toLowerCase();
    if (rule.startsWith(".")) return file.name.toLowerCase().endsWith(rule);
    if (rule.endsWith("/*")) return file.type.startsWith(rule.slice(0, -1));
    return file.type === rule;
  });
}

let last = 0;

function attach(file: File): Attachment {
  last += 1;
  const preview = file.type.startsWith("image/") ? URL.createObjectURL(file) : undefined;
  return { id: last, file, preview };
}

function release(items: readonly Attachment[]): void {
  for (const { preview } of items) if (preview) URL.revokeObjectURL(preview);
}

/** Manages the files of a field. */
export function useFiles({ accept, maxBytes, most = 1 }: FilesOptions): Files {
  const [items, setItems] = useState<readonly Attachment[]>([]);
  const [isOver, setOver] = useState(false);
  // Several changes can occur before the next render, so they start from this list.
  const kept = useRef(items);
  useEffect(() => () => release(kept.current), []);

  const change = (next: readonly Attachment[]) => {
    release(kept.current.filter((item) => !next.includes(item)));
    kept.current = next;
    setItems(next);
  };
  const add = (files: Iterable<File>) => {
    const added = [...files].filter((file) => isFit(file, accept, maxBytes)).map(attach);
    if (added.length > 0) change([...kept.current, ...added].slice(-most));
  };
  const remove = (id: number) => change(kept.current.filter((item) => item.id !== id));
  const clear = () => change([]);
  const onPaste = (event: ClipboardEvent) => {
    const { files } = event.clipboardData;
    if (files.length === 0) return;
    event.preventDefault();
    add(files);
  };
  const dropProps = {
    "data-drop": isOver,
    onDragOver: (event: DragEvent) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: () => setOver(false),
    onDrop: (event: DragEvent) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      setOver(false);
      add(event.dataTransfer.files);
    },
  };
  return { accept, most, items, add, remove, clear, onPaste, dropProps };
}

function isFit(file: File, accept: string, maxBytes: number): boolean {
  const { locale, unsupportedFile, largeFile } = texts();
  if (!isAccepted(file, accept)) {
    toast(unsupportedFile(file.name), "error");
    return false;
  }
  if (file.size > maxBytes) {
    const limit = (maxBytes / (1 << 20)).toLocaleString(locale, { maximumFractionDigits: 1 });
    toast(largeFile(file.name, limit), "error");
    return false;
  }
  return true;
}

/** A button that opens the browser's file dialog. */
export function FileButton({ files }: { files: Files }) {
  const { addFile: label } = useTexts();
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button
        type="button"
        className="w-icon-button"
        aria-label={label}
        title={label}
        onClick={() => input.current?.click()}
      >
        <span aria-hidden="true">＋</span>
      </button>
      <input
        ref={input}
        type="file"
        hidden
        aria-label={label}
        accept={files.accept}
        multiple={files.most > 1}
        onChange={(event) => {
          files.add(event.target.files ?? []);
          // Permits choosing the same file again.
          event.target.value = "";
        }}
      />
    </>
  );
}

/** The added files, each with a button that removes it. */
export function FilePreviews({ files }: { files: Files }) {
  const texts = useTexts();
  if (files.items.length === 0) return null;
  return (
    <ul className="w-files" aria-label={texts.files}>
      {files.items.map(({ id, file, preview }) => (
        <li key={id}>
          {preview && <img src={preview} alt={texts.preview(file.name)} />}
          <span>{file.name}</span>
          <button
            type="button"
            className="w-icon-button"
            aria-label={texts.removeFile(file.name)}
            onClick={() => files.remove(id)}
          >
            <span aria-hidden="true">×</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
