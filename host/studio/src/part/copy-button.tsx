// A button that copies a text.
import { Button, copyText, toast } from "@wattle/page";

interface CopyButtonProps {
  text: string;
  /** Name of the button for screen readers, where a view has several. */
  name?: string | undefined;
}

const TEXTS = {
  copy: "Copy",
  copied: "Copied.",
  notCopied: "The browser does not allow copying.",
};

export function CopyButton({ text, name }: CopyButtonProps) {
  const copy = () =>
    copyText(text).then(
      () => toast(TEXTS.copied, "ok"),
      () => toast(TEXTS.notCopied, "error"),
    );
  return (
    <Button aria-label={name} onClick={() => void copy()}>
      {TEXTS.copy}
    </Button>
  );
}
