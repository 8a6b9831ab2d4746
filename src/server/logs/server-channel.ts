// How the servers of one control plane reach each other: short messages that every one of them gets, and that nobody stores.
export interface ServerChannel {
  /** Sends the messages together and in this order, each with at most `messageCharsMax` characters. */
  publish(messages: readonly string[]): Promise<void>;
  /** Resolves once messages arrive, also those of this server. They are lost while the connection is. */
  listen(onMessage: (message: string) => void): Promise<void>;
}

/** Of a notification of PostgreSQL, with some room. */
export const messageCharsMax = 7_900;
