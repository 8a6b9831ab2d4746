// Signs in with a token, once. It is sent as the authorization of one call, and kept nowhere.
import { useSignal } from "@preact/signals";
import type { Model } from "./model.ts";
import { Notice } from "./parts.tsx";

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
        A line of <code>server.admin_tokens</code>. A server with a data folder keeps it in{" "}
        <code>admin-tokens</code> there; <code>krane dev</code> prints it. The browser gets a session of 8
        hours instead.
      </p>
    </main>
  );
}
