// What is shown in place of a part that cannot be rendered.
import { Component, type ReactNode } from "react";
import { Alert } from "../alert/alert.tsx";
import { Button } from "../control/button.tsx";
import { useTexts } from "../language/language.ts";

interface ErrorBoundaryProps {
  /** Shown once a child has thrown an error while it was loaded or rendered. */
  fallback: ReactNode;
  children: ReactNode;
}

/** Contains an error of its children. React logs the error to the console. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    return this.state.hasFailed ? this.props.fallback : this.props.children;
  }
}

/** The fallback of a whole page. It uses nothing that the page itself may have broken. */
export function PageFailure() {
  const texts = useTexts();
  return (
    <main className="w-failure">
      <Alert actions={<Button onClick={() => location.reload()}>{texts.reload}</Button>}>
        {texts.pageFailed}
      </Alert>
    </main>
  );
}
