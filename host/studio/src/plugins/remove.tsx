// Removes a standalone plugin that no app uses, after a question.
import { useQueryClient } from "@tanstack/react-query";
import { Button, toast } from "@wattle/page";
import { useState } from "react";
import { Refusal, useAttempt } from "../part/attempt.tsx";
import { Confirm } from "../part/confirm.tsx";
import { visible } from "../part/text.tsx";
import { pluginsRoute, useGoLater } from "../router/links.tsx";
import { remove } from "./install.ts";
import { PLUGINS_KEY } from "./read.ts";
import { DROP } from "./texts.ts";

export function RemovePlugin({ plugin }: { plugin: string }) {
  const client = useQueryClient();
  const goLater = useGoLater();
  const [isOpen, setOpen] = useState(false);
  const removing = useAttempt(async () => {
    const go = goLater();
    await remove(plugin);
    void client.invalidateQueries({ queryKey: PLUGINS_KEY });
    toast(DROP.removed(visible(plugin)), "ok");
    go(pluginsRoute());
  });
  const ask = () => {
    removing.forget();
    setOpen(true);
  };
  return (
    <div>
      <Button kind="danger" onClick={ask}>
        {DROP.remove}
      </Button>
      <Confirm
        open={isOpen}
        title={DROP.removeTitle(visible(plugin))}
        name={DROP.remove}
        isBusy={removing.isBusy}
        onConfirm={removing.act}
        onClose={() => setOpen(false)}
      >
        <p>{DROP.removeText}</p>
        <Refusal error={removing.refusal} />
      </Confirm>
    </div>
  );
}
