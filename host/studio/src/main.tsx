// Entry of the studio.
import { RouterProvider } from "@tanstack/react-router";
import { showPage } from "@wattle/page";
import { AccessGate } from "./access/access.tsx";
import { offerKey } from "./access/key.ts";
import { enterBase } from "./router/base.ts";
import { createStudioRouter } from "./router/router.tsx";

enterBase();
offerKey();
const router = createStudioRouter();

showPage(
  <AccessGate>
    <RouterProvider router={router} />
  </AccessGate>,
);
