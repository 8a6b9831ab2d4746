// The sessions of browsers that signed in, and the sign-ins at a provider that are not completed yet. They are kept with everything else, so that each of several servers
// accepts them, and one that ends on one server has ended on all.

/** Neither its secret nor its token can be computed, or guessed, from it. */
export interface StoredSession {
  /** The SHA-256 of its secret, as hex. */
  readonly id: string;
  /** The name of the token that it was made with, or of the person at the provider. */
  readonly name: string;
  /** Binds it to that token, or to the provider; see session-secrets.ts. */
  readonly binding: string;
  /** The groups that the provider named; only with a provider. */
  readonly groups?: readonly string[];
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** Beyond it, the oldest session of a name ends when a new one is made. */
export const sessionsPerNameMax = 100;

/** A sign-in at a provider that somebody has begun. */
export interface StoredSignIn {
  /** The SHA-256 of its secret, as hex. */
  readonly id: string;
  /** The view to show afterwards. */
  readonly returnTo: string;
  readonly expiresAtMs: number;
}

/** Beyond it, the oldest is forgotten. Anybody may begin one. */
export const signInsMax = 10_000;

export interface SessionStore {
  /** Also forgets the sessions that have expired by then. */
  add(session: StoredSession): Promise<void>;
  /** Undefined if it has ended. The caller checks whether it has expired. */
  find(id: string): Promise<StoredSession | undefined>;
  /** Ends one session, or all of a name; resolves with their number. */
  end(which: Partial<Pick<StoredSession, "id" | "name">>): Promise<number>;
  /** Also forgets those that have expired. */
  beginSignIn(signIn: StoredSignIn, nowMs: number): Promise<void>;
  /** Only one caller gets it. The caller checks whether it has expired. */
  takeSignIn(id: string): Promise<StoredSignIn | undefined>;
}

export class MemorySessions implements SessionStore {
  /** Oldest first. */
  private sessions: readonly StoredSession[] = [];
  /** Oldest first. */
  private signIns: readonly StoredSignIn[] = [];

  async add(session: StoredSession): Promise<void> {
    const live = this.sessions.filter(({ expiresAtMs }) => expiresAtMs > session.createdAtMs);
    const own = live.filter(({ name }) => name === session.name);
    const surplus = new Set(own.slice(0, Math.max(0, own.length + 1 - sessionsPerNameMax)));
    this.sessions = [...live.filter((each) => !surplus.has(each)), session];
  }

  async find(id: string): Promise<StoredSession | undefined> {
    return this.sessions.find((each) => each.id === id);
  }

  async end({ id, name }: Partial<StoredSession>): Promise<number> {
    const kept = this.sessions.filter((each) => each.id !== id && each.name !== name);
    const count = this.sessions.length - kept.length;
    this.sessions = kept;
    return count;
  }

  async beginSignIn(signIn: StoredSignIn, nowMs: number): Promise<void> {
    const live = this.signIns.filter(({ expiresAtMs }) => expiresAtMs > nowMs);
    this.signIns = [...live.slice(-(signInsMax - 1)), signIn];
  }

  async takeSignIn(id: string): Promise<StoredSignIn | undefined> {
    const found = this.signIns.find((each) => each.id === id);
    this.signIns = this.signIns.filter((each) => each !== found);
    return found;
  }
}
