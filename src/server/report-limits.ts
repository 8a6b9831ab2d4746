// Limits how much of an agent's state report the control plane keeps. Storing one report
// blocks all others of the region: an agent that lists everything it has, or quotes a whole
// log in a reason, would block its region. What is cut off is for people to read, and the
// agent itself still has all of it.
//
// Every field is visited, so that a field added by a later version is limited too.
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
import { StrangerSchema } from "../gen/krane/v1/agent_pb.ts";

/** Twice what an agent lists. */
const listMax = 200;
/** What an agent lists: those that can be adopted, and some others. */
const strangersMax = 1_100;
/** A name in the cluster with its namespace has at most 317 characters. */
const textMax = 1_000;
/** The texts of strangers: there are many of them, and a name has at most 253 characters. */
const nameMax = 300;
/** The largest integer that the database can store. */
const numberMax = 2n ** 63n - 1n;

/** A copy within the limits, without control characters, which terminals interpret and databases reject. */
export function limitReport(report: ReportAgentStateRequest): ReportAgentStateRequest {
  const limited = clone(ReportAgentStateRequestSchema, {
    ...report,
    // Before the copy is made, so that an oversized list is not held in memory twice.
    troubledObjects: report.troubledObjects.slice(0, listMax),
    blockedDeletions: report.blockedDeletions.slice(0, listMax),
    strangers: report.strangers.slice(0, strangersMax),
  });
  for (const { stream } of limited.state?.controllers ?? []) {
    // The one list that is not for people: entries cut off would count as settled. So only the cursor is kept, as an
    // agent with a lot of work reports it.
    if (stream !== undefined && stream.unsettled.length > listMax)
      Object.assign(stream, { settledUpTo: stream.cursor, unsettled: [] });
  }
  limitFields(reflect(ReportAgentStateRequestSchema, limited));
  return limited;
}

function limitFields(message: ReflectMessage): void {
  const limit = (value: unknown) => limitValue(value, message.desc === StrangerSchema ? nameMax : textMax);
  message.setUnknown([]);
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    const value: unknown = message.get(field);
    if (isReflectMap(value)) {
      // No such field exists yet. A future one needs a limit as the lists have; until then it is dropped.
      message.clear(field);
    } else if (isReflectList(value)) {
      const items = [...value].slice(0, field.message === StrangerSchema ? strangersMax : listMax);
      value.clear();
      for (const item of items) value.add(limit(item));
    } else if (isReflectMessage(value)) {
      limitFields(value);
    } else {
      message.set(field, limit(value));
    }
  }
}

function limitValue(value: unknown, charsMax: number): unknown {
  if (isReflectMessage(value)) limitFields(value);
  if (typeof value === "bigint") return value < numberMax ? value : numberMax;
  if (typeof value === "string") return value.slice(0, charsMax).replaceAll(/\p{Cc}+/gu, " ");
  return value instanceof Uint8Array ? value.slice(0, charsMax) : value;
}
