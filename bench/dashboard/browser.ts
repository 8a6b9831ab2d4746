// A page of the dashboard in Chromium: how long its frames take, when it shows a change, and how much memory it needs.
import { type Browser, type CDPSession, chromium, type Page } from "playwright-core";

export interface PageFigures {
  /** Between two frames. */
  readonly frameMs: readonly number[];
  /** From a key in the search until the frame after it was drawn. */
  readonly keyMs: readonly number[];
  /** When the first row got another image, by this machine's clock. */
  readonly seen: readonly (readonly [string, number])[];
}

// Runs in the page: watches every frame, and what the first row says in it.
const watchFrames = `(() => {
  const found = { frameMs: [], keyMs: [], seen: [] };
  globalThis.krane = found;
  let before = performance.now();
  let image = "";
  const each = (now) => {
    found.frameMs.push(now - before);
    before = now;
    const cell = document.querySelector("tbody tr td.image");
    if (cell !== null && cell.textContent !== image) {
      image = cell.textContent;
      found.seen.push([image, Date.now()]);
    }
    requestAnimationFrame(each);
  };
  requestAnimationFrame(each);
  addEventListener("input", () => {
    const began = performance.now();
    requestAnimationFrame(() => setTimeout(() => found.keyMs.push(performance.now() - began)));
  }, true);
})()`;

const takeFigures = `(() => {
  const { frameMs, keyMs, seen } = globalThis.krane;
  return { frameMs: frameMs.splice(0), keyMs: keyMs.splice(0), seen: seen.splice(0) };
})()`;

export class WatchedPage {
  private readonly browser: Browser;
  private readonly page: Page;
  private readonly debug: CDPSession;

  private constructor(browser: Browser, page: Page, debug: CDPSession) {
    this.browser = browser;
    this.page = page;
    this.debug = debug;
  }

  /** Opens a region in a browser of its own, and waits until all of it is shown. */
  static async open(options: {
    readonly executablePath: string;
    readonly url: string;
    readonly token: string;
    readonly region: string;
  }): Promise<WatchedPage> {
    const { executablePath, url, token, region } = options;
    const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    const browser = await chromium.launch({ executablePath, args });
    try {
      const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
      await page.goto(`${url}/dashboard/regions/${region}`);
      await page.getByLabel("Token of the admin API").fill(token);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByText("loading more").waitFor({ state: "detached", timeout: 120_000 });
      await page.getByText(/^\d[\d,]+ objects/).waitFor({ timeout: 120_000 });
      const debug = await page.context().newCDPSession(page);
      await page.evaluate(watchFrames);
      return new WatchedPage(browser, page, debug);
    } catch (error) {
      await browser.close();
      throw error;
    }
  }

  /** Every object matches, so that every key costs the most. */
  async search(): Promise<void> {
    const field = this.page.getByRole("searchbox");
    await field.pressSequentially("acme");
    await field.fill("");
  }

  /** Resolves once the page shows the text. */
  async sees(text: string): Promise<void> {
    await this.page.getByText(text).first().waitFor({ timeout: 120_000 });
  }

  /** Since the last time. */
  figures(): Promise<PageFigures> {
    return this.page.evaluate(takeFigures);
  }

  /** Of the scripts, after collecting what is not used any more. */
  async heapBytes(): Promise<number> {
    await this.debug.send("HeapProfiler.collectGarbage");
    return (await this.debug.send("Runtime.getHeapUsage")).usedSize;
  }

  /** Of the processes that run pages. */
  async cpuSeconds(): Promise<number> {
    const session = await this.browser.newBrowserCDPSession();
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    await session.detach();
    return processInfo.reduce((sum, { type, cpuTime }) => (type === "renderer" ? sum + cpuTime : sum), 0);
  }

  close(): Promise<void> {
    return this.browser.close();
  }
}
