// The page: builds the model, follows the fleet while somebody is signed in, and draws.

import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { effect } from "@preact/signals";
import { render } from "preact";
import { AdminService } from "../../gen/krane/admin/v1/admin_pb.ts";
import { createBrowser } from "./browser.ts";
import { followFleet } from "./live.ts";
import { Model } from "./model.ts";
import { parseRoute } from "./route.ts";
import { Shell } from "./shell.tsx";

const browser = createBrowser();
const api = createClient(
  AdminService,
  createConnectTransport({ baseUrl: location.origin, useBinaryFormat: true }),
);
const model = new Model(api, browser, location);

addEventListener("popstate", () => {
  model.route.value = parseRoute(location);
});

effect(() => {
  if (model.signedIn.value.kind !== "in") return undefined;
  const following = new AbortController();
  followFleet(
    {
      api,
      browser,
      onMessage: (message) => model.hear(message),
      onLost: () => model.lose(),
      onSessionEnded: () => model.leave("Your session has ended. Sign in again."),
    },
    following.signal,
  );
  return () => following.abort();
});

model.start();
const root = document.getElementById("app");
if (root !== null) {
  root.replaceChildren();
  render(<Shell model={model} />, root);
}
