// One message: text of the user as it is, text of the model as Markdown, tools as cards.
import { Button, JsonView, Said, ToolCard, toolState } from "@wattle/page";
import { textOf } from "@wattle/page/ai";
import { Markdown } from "@wattle/page/markdown";
import {
  type DynamicToolUIPart,
  getToolName,
  isToolUIPart,
  type ToolUIPart,
  type UIMessage,
} from "ai";
import { memo } from "react";
import { editableBlocks, HTML_TOOL, summaryOf, titleOf, withoutLongTexts } from "./tools.ts";

interface MessageProps {
  message: UIMessage;
  /** The message may still grow. */
  isLive: boolean;
  /** Ids of the tool calls that were cancelled. */
  cancelled: ReadonlySet<string>;
  onOpen: (view: "blocks" | "html") => void;
}

export function Message({ message, isLive, cancelled, onOpen }: MessageProps) {
  if (message.role === "user") return <Said by="user">{textOf(message)}</Said>;
  return (
    <Said by={message.role}>
      {message.parts.map((part, index) => {
        const key = `${message.id}-${index}`;
        if (part.type === "text") return <Markdown key={key}>{part.text}</Markdown>;
        if (!isToolUIPart(part)) return null;
        const { toolCallId } = part;
        const isCancelled = cancelled.has(toolCallId);
        const given = { part, isLive, isCancelled, onOpen };
        return <Tool key={toolCallId} {...given} />;
      })}
    </Said>
  );
}

interface ToolProps {
  part: ToolUIPart | DynamicToolUIPart;
  isLive: boolean;
  isCancelled: boolean;
  onOpen: (view: "blocks" | "html") => void;
}

const Tool = memo(function Tool({ part, isLive, isCancelled, onOpen }: ToolProps) {
  const name = getToolName(part);
  const canEdit = editableBlocks(name, part.output) !== undefined;
  const isPage = name === HTML_TOOL && part.state === "output-available";
  const summary = summaryOf(name, part.output);
  return (
    <ToolCard
      title={titleOf(name)}
      name={name}
      state={isCancelled ? "cancelled" : toolState(part.state, isLive)}
      error={isCancelled ? undefined : part.errorText}
      {...(summary === undefined ? {} : { summary })}
      actions={
        canEdit ? (
          <Button onClick={() => onOpen("blocks")}>Edit blocks</Button>
        ) : isPage ? (
          <Button onClick={() => onOpen("html")}>查看手册</Button>
        ) : undefined
      }
    >
      <JsonView label={`${titleOf(name)}的输入`} value={withoutLongTexts(part.input)} />
      {part.output !== undefined && (
        <JsonView label={`${titleOf(name)}的输出`} value={withoutLongTexts(part.output)} />
      )}
    </ToolCard>
  );
});
