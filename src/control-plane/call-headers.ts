// Headers of one call, beside those that all calls share. They travel in the call's context, because the transport caches
// the converted headers that all calls pass.
import { type ContextValues, createContextKey } from "@connectrpc/connect";

export type CallHeaders = Readonly<Record<string, string>>;

const none: CallHeaders = {};
const headersKey = createContextKey<CallHeaders>(none);

export function withHeaders(context: ContextValues, headers: CallHeaders): ContextValues {
  return context.set(headersKey, headers);
}

export function callHeadersOf(context: ContextValues | undefined): CallHeaders {
  return context === undefined ? none : context.get(headersKey);
}
