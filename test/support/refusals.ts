// What a refused call is asked for in tests: `await assert.rejects(call, hasCode(Code.NotFound, /no such region/))`.
import { type Code, ConnectError } from "@connectrpc/connect";

export function hasCode(code: Code, text = /./): (error: unknown) => boolean {
  return (error) => error instanceof ConnectError && error.code === code && text.test(error.message);
}
