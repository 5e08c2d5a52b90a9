// Removes a standalone plugin that no app uses, after a question.
import { useQueryClient } from "@tanstack/react-query";
import { Alert, Button, Dialog, toast, useOnce } from "@wattle/page";
import { useState } from "react";
import { Text, visible } from "../part/text.tsx";
import { pluginsRoute, useGo } from "../router/links.tsx";
import { remove } from "./install.ts";
import { PLUGINS_KEY } from "./read.ts";
import { DROP } from "./texts.ts";

export function RemovePlugin({ plugin }: { plugin: string }) {
  const client = useQueryClient();
  const go = useGo();
  const [isOpen, setOpen] = useState(false);
  const [refusal, setRefusal] = useState<string>();
  const [send, isBusy] = useOnce(async () => {
    try {
      await remove(plugin);
    } catch (error) {
      return setRefusal(error instanceof Error ? error.message : String(error));
    }
    void client.invalidateQueries({ queryKey: PLUGINS_KEY });
    toast(DROP.removed(visible(plugin)), "ok");
    go(pluginsRoute());
  });
  const show = (open: boolean) => {
    setRefusal(undefined);
    setOpen(open);
  };
  return (
    <div>
      <Button kind="danger" onClick={() => show(true)}>
        {DROP.remove}
      </Button>
      <Dialog
        open={isOpen}
        title={DROP.removeTitle(visible(plugin))}
        onClose={() => show(false)}
        footer={
          <>
            <Button onClick={() => show(false)}>{DROP.keep}</Button>
            <Button kind="danger" busy={isBusy} onClick={() => void send()}>
              {DROP.remove}
            </Button>
          </>
        }
      >
        <p>{DROP.removeText}</p>
        {refusal !== undefined && (
          <Alert>
            <Text>{refusal}</Text>
          </Alert>
        )}
      </Dialog>
    </div>
  );
}
