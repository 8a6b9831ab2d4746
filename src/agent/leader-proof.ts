// How an agent proves to another one of its region that it is a certain process, before that one sends it the token of a
// caller. Both have the keys of the seal, which tenants cannot read. The proof also names the address that was called and the
// certificate of the connection, so that it is worth nothing to a process at another address that passes it on.
import type { TLSSocket } from "node:tls";
import { type HttpHandler, type HttpRequest, jsonResponse, send } from "../http/http-handler.ts";
import type { Seal } from "../model/seal.ts";

export const leaderProofPath = "/leader-proof";
export const challengeHeader = "krane-challenge";
const purpose = "leader";
const challengeFormat = /^[\w-]{43}$/;

export interface ProvedConnection {
  /** Of the process, as the Lease has it. */
  readonly identity: string;
  /** Where it is called: the origin of the URL that it announces. */
  readonly origin: string;
  /** The fingerprint of its certificate; empty without TLS. */
  readonly certificate: string;
  /** Chosen at random by the process that wants the proof. */
  readonly challenge: string;
}

export interface LeaderProof {
  isMadeBy(connection: ProvedConnection, proof: string): boolean;
}

export function createLeaderProof(seal: Seal): LeaderProof {
  return { isMadeBy: (connection, proof) => seal.isProved(proof, purpose, partsOf(connection)) };
}

function partsOf({ identity, origin, certificate, challenge }: ProvedConnection): readonly string[] {
  return [identity, origin, certificate, challenge];
}

/** Serves the proof of this process. Anybody may ask for it: without the keys it is a random text. */
export function leaderProofRoute(
  announced: () => Pick<ProvedConnection, "identity" | "origin"> | undefined,
  seal: () => Seal | undefined,
): HttpHandler {
  return (request, response) => {
    const challenge = request.headers[challengeHeader];
    const [own, keys] = [announced(), seal()];
    if (typeof challenge !== "string" || !challengeFormat.test(challenge))
      return send(request, response, jsonResponse(400, { error: `no valid ${challengeHeader}` }));
    if (own === undefined || keys === undefined)
      return send(request, response, jsonResponse(503, { error: "not started, or no address announced" }));
    const connection = { ...own, certificate: certificateOf(request), challenge };
    const body = `${keys.prove(purpose, partsOf(connection))}\n`;
    return send(request, response, { status: 200, contentType: "text/plain", body });
  };
}

/** The certificate that this process used for the connection. */
function certificateOf({ socket }: HttpRequest): string {
  const { getCertificate } = socket as Partial<TLSSocket>;
  const certificate = getCertificate?.call(socket);
  return certificate && "fingerprint256" in certificate ? certificate.fingerprint256 : "";
}
