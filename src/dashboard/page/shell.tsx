// The frame of every view: where you are, whether what you see is the present, and who you are.
import { useEffect, useRef } from "preact/hooks";
import { Apply } from "./apply.tsx";
import { Environment } from "./environment.tsx";
import { Fleet } from "./fleet.tsx";
import { Held } from "./held.tsx";
import type { Model } from "./model.ts";
import { ObjectPage } from "./object.tsx";
import { Link, Lone, Notice, type ViewProps } from "./parts.tsx";
import { Region } from "./region.tsx";
import type { Route } from "./route.ts";
import { SignIn } from "./sign-in.tsx";

export function Shell({ model }: ViewProps) {
  const signedIn = model.signedIn.value;
  if (signedIn.kind === "out") return <SignIn model={model} reason={signedIn.reason} />;
  if (signedIn.kind === "unknown")
    return (
      <main class="sign-in">
        <h1>krane</h1>
        {model.problem.value === "" ? (
          <p role="status">Loading…</p>
        ) : (
          <Notice tone="bad">The server does not answer: {model.problem.value}. Trying again…</Notice>
        )}
      </main>
    );
  const connection = model.connection.value;
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Bar model={model} name={signedIn.session.name} />
      {connection.kind === "lost" && (
        <div class="gone" role="alert">
          The server does not answer. This is how it was {model.goneFor(connection.sinceMs)} ago;
          reconnecting…
        </div>
      )}
      <Main model={model} />
    </>
  );
}

/** Grey while the server is gone: nothing that it shows is known to be true. */
function Main({ model }: ViewProps) {
  const main = useRef<HTMLElement>(null);
  const route = model.route.value;
  const place = route.view === "region" ? `region ${route.region}` : JSON.stringify(route);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = titleOf(route);
    // A screen reader goes on with the new view, not with the link that led here.
    if (!isFirst.current) main.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [place]);
  return (
    <main
      id="main"
      ref={main}
      tabIndex={-1}
      class={model.connection.value.kind === "lost" ? "gone-view" : undefined}
    >
      <View model={model} route={route} />
    </main>
  );
}

function View({ model, route }: { readonly model: Model; readonly route: Route }) {
  if (route.view === "fleet") return <Fleet model={model} />;
  if (route.view === "held") return <Held model={model} />;
  if (route.view === "region") return <Region key={route.region} model={model} route={route} />;
  if (route.view === "object" && route.kind === "environment")
    return (
      <Environment key={`${route.region}/${route.id}`} model={model} region={route.region} id={route.id} />
    );
  if (route.view === "object")
    return <ObjectPage key={`${route.region}/${route.kind}/${route.id}`} model={model} route={route} />;
  if (route.view === "apply")
    return <Apply key={`${route.region}/${route.of?.kind}/${route.of?.id}`} model={model} route={route} />;
  return (
    <Lone title="Page not found">
      <p>
        Nothing is at <code>{route.path}</code>.
      </p>
      <p>
        <Link model={model} to={{ view: "fleet" }}>
          To the fleet
        </Link>
      </p>
    </Lone>
  );
}

function titleOf(route: Route): string {
  if (route.view === "region") return `${route.region} · krane`;
  if (route.view === "object") return `${route.id} · ${route.region} · krane`;
  if (route.view === "apply") return `Apply · ${route.region} · krane`;
  if (route.view === "held") return "Held-back deletions · krane";
  return route.view === "fleet" ? "Fleet · krane" : "Not found · krane";
}

function Bar({ model, name }: { readonly model: Model; readonly name: string }) {
  const route = model.route.value;
  const held = [...(model.agents.value?.values() ?? [])].reduce(
    (sum, agent) => sum + agent.blockedDeletions.length,
    0,
  );
  const inRegion = "region" in route ? route.region : undefined;
  return (
    <header class="bar">
      <span class="brand" aria-hidden="true">
        krane
      </span>
      <nav aria-label="Views">
        <Link class="tab" model={model} to={{ view: "fleet" }} isCurrent={route.view === "fleet"}>
          Fleet
        </Link>
        {inRegion !== undefined && (
          <Link
            class="tab"
            model={model}
            to={model.regionRoute(inRegion)}
            isCurrent={route.view === "region" || "within"}
          >
            {inRegion}
          </Link>
        )}
        <Link class="tab" model={model} to={{ view: "held" }} isCurrent={route.view === "held"}>
          Held back{held > 0 && <span class="badge">{held}</span>}
        </Link>
      </nav>
      <div class="who">
        <LiveMark model={model} />
        <span>
          {name}
          {model.canWrite.value ? "" : " (read-only)"}
        </span>
        <button type="button" onClick={() => void model.signOut()}>
          Sign out
        </button>
      </div>
    </header>
  );
}

function LiveMark({ model }: ViewProps) {
  const { kind } = model.connection.value;
  const text = kind === "live" ? "Live" : kind === "lost" ? "Offline" : "Connecting";
  const tone = kind === "live" ? "good" : kind === "lost" ? "bad" : "busy";
  return (
    <span class={`state ${tone}`} role="status">
      <span class="mark" aria-hidden="true" />
      {text}
    </span>
  );
}
