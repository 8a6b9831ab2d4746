// What is wrong with an order beyond the message that it brings.
import type { DesiredMessage } from "./desired-message.ts";

export function invalidOrder<Spec>(
  message: DesiredMessage<Spec>,
  path: string,
  reason: string,
): DesiredMessage<Spec> {
  return { ...message, want: { kind: "invalid", problems: [{ path, message: reason }] } };
}
