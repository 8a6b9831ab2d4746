// `make screenshots`: writes a picture of every page of the dashboard into docs/images, as it looks on a desk, a tablet and a phone.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { endless, stamped } from "../support/printed-logs.ts";
import { createWorld, regions, signIn, type World } from "./dashboard-world.ts";

const folder = "docs/images";
const widths = [1200, 768, 375] as const;
const height = 900;

interface Shot {
  readonly path: string;
  /** Waits until everything is there. */
  ready(page: Page): Promise<unknown>;
  /** What somebody does first. */
  prepare?(page: Page): Promise<unknown>;
  /** The title of the section to show, of a page that is longer than the picture. */
  readonly section?: string;
}

const shots: Readonly<Record<string, Shot>> = {
  fleet: { path: "", ready: (page) => page.getByText("pods that cannot run").waitFor() },
  region: { path: `regions/${regions.live}`, ready: (page) => page.getByText("2/2").first().waitFor() },
  object: {
    path: `regions/${regions.live}/deployment/d_checkout`,
    ready: (page) => page.getByText("image-pull").waitFor(),
  },
  app: {
    path: `regions/${regions.live}/app/app_shop`,
    ready: (page) => page.getByText("Retired").first().waitFor(),
  },
  edit: {
    path: `regions/${regions.live}/apply?of=deployment/d_web`,
    ready: (page) => page.getByLabel("Documents, as YAML").waitFor(),
    async prepare(page) {
      const editor = page.getByLabel("Documents, as YAML");
      await editor.fill(
        (await editor.inputValue()).replace("web:1", "web:2").replace("cpu: 250m", "cpu: 500m"),
      );
      await page.getByRole("button", { name: "Preview changes" }).click();
      await page.getByText("It would be changed.").waitFor();
    },
  },
  pods: {
    path: `regions/${regions.live}/deployment/d_worker`,
    ready: (page) => page.getByText("3 of 3 ready").waitFor(),
  },
  logs: {
    path: `regions/${regions.live}/deployment/d_web`,
    ready: (page) => page.getByText("2 of 2 ready").waitFor(),
    section: "Logs",
    async prepare(page) {
      await page.getByRole("button", { name: "Show logs" }).click();
      await page.getByText("GET /checkout 502").nth(1).waitFor();
    },
  },
  environment: {
    path: `regions/${regions.live}/environment/env_shop`,
    ready: (page) => page.getByText("DATABASE_URL").first().waitFor(),
  },
  apply: {
    path: `regions/${regions.live}/apply`,
    ready: (page) => page.getByLabel("Documents, as YAML").waitFor(),
    async prepare(page) {
      const editor = page.getByLabel("Documents, as YAML");
      await editor.fill((await editor.inputValue()).replace("replicas: 2", "replicas: many"));
      await page.getByRole("button", { name: "Preview changes" }).click();
      await page.getByRole("alert", { name: "Problems" }).waitFor();
    },
  },
  silent: {
    path: `regions/${regions.silent}`,
    ready: (page) => page.getByText("acme/old").waitFor(),
  },
  empty: {
    path: `regions/${regions.empty}`,
    ready: (page) => page.getByText("Nothing here yet").waitFor(),
  },
  missing: {
    path: `regions/${regions.live}/deployment/d_never`,
    ready: (page) => page.getByRole("heading", { name: "Not found" }).waitFor(),
  },
  held: { path: "held", ready: (page) => page.getByText("acme/gone").first().waitFor() },
};

async function take(page: Page, { ready, prepare, section }: Shot): Promise<Buffer> {
  await ready(page);
  await prepare?.(page);
  if (section !== undefined) return page.getByRole("region", { name: section, exact: true }).screenshot();
  const tall = Number(await page.evaluate("document.documentElement.scrollHeight"));
  return page.screenshot({
    clip: { x: 0, y: 0, width: page.viewportSize()?.width ?? 0, height: Math.min(tall, height) },
    fullPage: true,
  });
}

/** One picture of several, side by side. */
async function joined(visit: BrowserContext, pictures: readonly Buffer[]): Promise<Buffer> {
  const page = await visit.newPage();
  const images = pictures.map((picture) => `<img src="data:image/png;base64,${picture.toString("base64")}">`);
  await page.setContent(
    `<!doctype html><style>body{margin:0;display:flex;gap:24px;align-items:start;width:max-content;background:#d6d9d8;padding:24px}img{display:block}</style>${images.join("")}`,
  );
  const picture = await page.locator("body").screenshot();
  await page.close();
  return picture;
}

const webLog = [
  stamped(36_000, 1, "listening on :8080"),
  stamped(36_001, 1, "GET /healthz 200 in 1 ms"),
  stamped(36_004, 1, "GET /checkout 200 in 48 ms"),
  stamped(36_009, 1, "upstream payments: connection refused, retrying in 500 ms"),
  stamped(36_010, 1, "GET /checkout 502 in 1,013 ms"),
];

/** A release that replaced another. */
async function releaseShop({ api }: World): Promise<void> {
  const change = { case: "image", value: "registry.example/acme/shop:2" } as const;
  await api.releaseApp({ region: regions.live, id: "app_shop", change });
}

test("every page at three widths", async () => {
  const world = await createWorld();
  try {
    await mkdir(folder, { recursive: true });
    const visit = await world.visit();
    const visitor = await visit.newPage();
    const write = async (name: string, pictures: readonly Buffer[]) =>
      writeFile(join(folder, `dashboard-${name}.png`), await joined(visit, pictures));
    const first = await shotsAt(visitor, `${world.url}/dashboard/`, {
      path: "",
      ready: (page) => page.getByLabel("Token of the admin API").waitFor(),
    });
    await write("sign-in", first);
    world.logs.run(endless(webLog));
    await signIn(visitor, world);
    await visitor.goto(`${world.url}/dashboard/${shots.app?.path}`);
    await visitor.getByText("Current", { exact: true }).waitFor();
    await releaseShop(world);
    for (const [name, shot] of Object.entries(shots))
      await write(name, await shotsAt(visitor, `${world.url}/dashboard/${shot.path}`, shot));
    await visitor.emulateMedia({ colorScheme: "dark" });
    const { region } = shots;
    if (region !== undefined)
      await write("dark", await shotsAt(visitor, `${world.url}/dashboard/${region.path}`, region));
  } finally {
    await world.close();
  }
});

async function shotsAt(page: Page, url: string, shot: Shot): Promise<readonly Buffer[]> {
  const pictures: Buffer[] = [];
  for (const width of widths) {
    await page.setViewportSize({ width, height });
    await page.goto(url);
    pictures.push(await take(page, shot));
  }
  return pictures;
}
