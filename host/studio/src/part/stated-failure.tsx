// The failure of a run or a call, as the host states it.
import { Alert } from "@wattle/page";
import { visible } from "./text.tsx";

export interface StatedFailureProps {
  title: string;
  failure: { code: string; message: string };
}

/** An alert with the code and the message of a failure. */
export function StatedFailure({ title, failure: { code, message } }: StatedFailureProps) {
  return (
    <Alert>
      {title}: {visible(`${code}: ${message}`)}
    </Alert>
  );
}
