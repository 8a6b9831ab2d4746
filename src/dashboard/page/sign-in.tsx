// Signs in: with a provider, if the server has one, or with a token. A token is sent as the authorization of one call, and kept nowhere.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { loadProvider } from "./browser.ts";
import type { Model } from "./model.ts";
import { Notice } from "./parts.tsx";

/** What the server says in the URL after a sign-in with the provider that failed. */
const problems: Readonly<Record<string, string>> = {
  busy: "Too many attempts to sign in. Wait a minute and try again.",
  denied: "The provider did not sign you in. Try again; if it stays so, ask who runs the provider.",
  expired:
    "This sign-in was begun in another browser, took longer than 10 minutes, or is complete. Sign in again here.",
  invalid:
    "The provider's answer could not be verified. Sign in again; if it stays so, ask who runs this server to look at its log.",
  unavailable: "The provider does not answer. Try again in a moment, or sign in with a token.",
  name: "The provider gave no usable name for you. Ask who runs this server to check server.oidc.name_claim, and whether your address is verified.",
  access:
    "None of your groups may use this server. Ask who runs it for a role in server.oidc.roles, or for another group.",
};

/** Where to come back to, and what went wrong the last time. */
function readLocation() {
  const params = new URLSearchParams(location.search);
  const problem = problems[params.get("sign-in") ?? ""];
  params.delete("sign-in");
  return { problem, to: `${location.pathname}${params.size > 0 ? `?${params}` : ""}` };
}

function Provider() {
  const { problem, to } = useSignal(readLocation()).value;
  const name = useSignal<string | undefined>(undefined);
  useEffect(() => {
    history.replaceState(null, "", to);
    void loadProvider().then((found) => {
      name.value = found;
    });
  }, []);
  return (
    <>
      {problem !== undefined && <Notice tone="bad">{problem}</Notice>}
      {name.value !== undefined && (
        <p>
          <a class="primary" href={`/dashboard/sign-in?to=${encodeURIComponent(to)}`}>
            Sign in with {name.value}
          </a>
        </p>
      )}
    </>
  );
}

export function SignIn({ model, reason }: { readonly model: Model; readonly reason: string }) {
  const problem = useSignal("");
  const isBusy = useSignal(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const field = form.elements.namedItem("token") as HTMLInputElement;
    const token = field.value.trim();
    if (token === "" || isBusy.value) return;
    isBusy.value = true;
    problem.value = /^[!-~]+$/.test(token)
      ? await model.signIn(token)
      : "A token has visible characters only.";
    isBusy.value = false;
    field.select();
  };
  return (
    <main class="sign-in">
      <h1>krane</h1>
      {reason !== "" && <Notice tone="calm">{reason}</Notice>}
      <Provider />
      <form onSubmit={(event) => void submit(event as unknown as SubmitEvent)}>
        <label for="token">Token of the admin API</label>
        <input
          id="token"
          name="token"
          type="password"
          autocomplete="off"
          autofocus
          required
          spellcheck={false}
          aria-describedby="hint"
        />
        {problem.value !== "" && <Notice tone="bad">{problem.value}</Notice>}
        <button type="submit" class="primary" disabled={isBusy.value}>
          {isBusy.value ? "Signing in…" : "Sign in"}
        </button>
      </form>
      <p id="hint" class="faint">
        One of <code>server.admin_tokens</code>. A server with a data folder keeps it in the file{" "}
        <code>admin-tokens</code> there; <code>krane dev</code> shows it. It is sent once, and the browser
        gets a session of 8 hours.
      </p>
    </main>
  );
}
