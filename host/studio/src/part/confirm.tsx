// A question before something that cannot be undone.
import { Button, Dialog } from "@wattle/page";
import type { ReactNode } from "react";

interface ConfirmProps {
  open: boolean;
  title: string;
  /** Name of the button that confirms. */
  name: string;
  isBusy: boolean;
  onConfirm: () => void;
  onClose: () => void;
  children: ReactNode;
}

const TEXTS = { keep: "Do nothing" };

/** Asks before something is done. It stays in place, so that the focus returns. */
export function Confirm({ open, title, name, isBusy, onConfirm, onClose, children }: ConfirmProps) {
  return (
    <Dialog
      open={open}
      title={title}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{TEXTS.keep}</Button>
          <Button kind="danger" busy={isBusy} onClick={onConfirm}>
            {name}
          </Button>
        </>
      }
    >
      {children}
    </Dialog>
  );
}
