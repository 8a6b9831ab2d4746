// The part of a browser that signing in needs: cookies for each host, and redirects, one at a time. Each has a loopback address of its
// own, so that limits for one address do not add up over a test.
import { Agent, fetch } from "undici";

export interface Visit {
  readonly status: number;
  readonly url: string;
  /** Absolute; absent without a redirect. */
  readonly location: string | undefined;
  readonly headers: { getSetCookie(): string[]; get(name: string): string | null };
  readonly body: string;
}

export class CookieBrowser {
  private static count = 0;
  private readonly jars = new Map<string, Map<string, string>>();
  private readonly localAddress: string;

  constructor() {
    CookieBrowser.count += 1;
    this.localAddress = `127.1.${CookieBrowser.count >> 8}.${CookieBrowser.count & 255}`;
  }

  cookies(url: string): Map<string, string> {
    const { hostname } = new URL(url);
    const jar = this.jars.get(hostname) ?? new Map<string, string>();
    this.jars.set(hostname, jar);
    return jar;
  }

  async get(
    url: string,
    init: { readonly headers?: Readonly<Record<string, string>>; readonly form?: string } = {},
  ): Promise<Visit> {
    const jar = this.cookies(url);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const isNumbered = new URL(url).hostname === "127.0.0.1";
    const dispatcher = new Agent(isNumbered ? { localAddress: this.localAddress } : {});
    const response = await fetch(url, {
      dispatcher,
      redirect: "manual",
      headers: {
        ...(cookie !== "" && { cookie }),
        ...(init.form !== undefined && { "content-type": "application/x-www-form-urlencoded" }),
        ...init.headers,
      },
      ...(init.form !== undefined && { method: "POST", body: init.form }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "") jar.delete(name);
      else jar.set(name, value);
    }
    const location = response.headers.get("location");
    const body = await response.text();
    await dispatcher.close();
    return {
      status: response.status,
      url,
      location: location === null ? undefined : new URL(location, url).href,
      headers: response.headers,
      body,
    };
  }

  /** Follows redirects until `isEnd` or a page. */
  async follow(url: string, isEnd: (next: string) => boolean): Promise<Visit> {
    let visit = await this.get(url);
    while (visit.location !== undefined && !isEnd(visit.location)) visit = await this.get(visit.location);
    return visit;
  }
}
