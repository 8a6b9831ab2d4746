// What an agent may have the control plane keep of its state. The store holds up every other
// report of the region while it enters one: an agent that lists everything it has, or quotes
// a whole log in a reason, would stop its region with it. What is cut is for people to read,
// and the agent itself has all of it.
//
// Every field is gone through, so that one which a later version adds has its limit too.
import { clone } from "@bufbuild/protobuf";
import {
  isReflectList,
  isReflectMap,
  isReflectMessage,
  type ReflectMessage,
  reflect,
} from "@bufbuild/protobuf/reflect";
import {
  type ReportAgentStateRequest,
  ReportAgentStateRequestSchema,
} from "../gen/ctrl/v1/cluster_service_pb.ts";

/** Twice what an agent lists. */
const listMax = 200;
/** A name in the cluster with its namespace has at most 317 characters. */
const textMax = 1_000;
/** The largest number that a database holds. */
const numberMax = 2n ** 63n - 1n;

/** A copy within the limits, without control characters, which a terminal obeys and a database refuses. */
export function limitReport(report: ReportAgentStateRequest): ReportAgentStateRequest {
  const limited = clone(ReportAgentStateRequestSchema, {
    ...report,
    // Before the copy is made: a list that is too long costs no memory twice.
    troubledObjects: report.troubledObjects.slice(0, listMax),
    blockedDeletions: report.blockedDeletions.slice(0, listMax),
  });
  for (const { stream } of limited.state?.controllers ?? []) {
    // The one list that is not for people: what is cut off it would be taken for settled. As an agent does that
    // has much to do, it tells of its cursor alone.
    if (stream !== undefined && stream.unsettled.length > listMax)
      Object.assign(stream, { settledUpTo: stream.cursor, unsettled: [] });
  }
  limitFields(reflect(ReportAgentStateRequestSchema, limited));
  return limited;
}

function limitFields(message: ReflectMessage): void {
  message.setUnknown([]);
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    const value: unknown = message.get(field);
    if (isReflectMap(value)) {
      // There is none yet. One that comes is to be limited as the lists are, and until then is not kept.
      message.clear(field);
    } else if (isReflectList(value)) {
      const items = [...value].slice(0, listMax);
      value.clear();
      for (const item of items) value.add(limitValue(item));
    } else if (isReflectMessage(value)) {
      limitFields(value);
    } else {
      message.set(field, limitValue(value));
    }
  }
}

function limitValue(value: unknown): unknown {
  if (isReflectMessage(value)) limitFields(value);
  if (typeof value === "bigint") return value < numberMax ? value : numberMax;
  if (typeof value === "string") return value.slice(0, textMax).replaceAll(/\p{Cc}+/gu, " ");
  return value instanceof Uint8Array ? value.slice(0, textMax) : value;
}
