// Decides where plain HTTP is acceptable for a URL that carries a bearer token: hosts whose traffic stays on the machine,
// in the cluster or in a private network. Other hosts must be allowed explicitly, because a token sent in clear text over
// the internet is compromised.

/** Takes the hostname as the URL class gives it: lower case, IP addresses in canonical form. */
export function isPrivateHost(hostname: string): boolean {
  if (hostname.startsWith("[")) return isPrivateIpv6(hostname.slice(1, -1));
  if (/^[\d.]+$/.test(hostname)) return isPrivateIpv4(hostname.split(".").map(Number));
  // A single label is resolved through the search domains of the cluster or the local network. With a trailing dot it is
  // absolute: "uz." is a public host.
  if (!hostname.includes(".")) return true;
  const name = hostname.replace(/\.$/, "");
  return name.endsWith(".localhost") || name.endsWith(".svc") || name.endsWith(".svc.cluster.local");
}

/** Whether a port on this address can be reached only from the same machine. Takes an IPv6 address without brackets. */
export function isLoopbackHost(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){1,3}$/.test(host);
}

function isPrivateIpv4(octets: readonly number[]): boolean {
  const [a = 0, b = 0] = octets;
  return (
    a === 127 ||
    a === 10 ||
    (a === 172 && b >= 16 && b <= 31) ||
    (a === 192 && b === 168) ||
    (a === 169 && b === 254)
  );
}

function isPrivateIpv6(address: string): boolean {
  // An IPv4-mapped address is judged as its IPv4 address.
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(address);
  if (mapped !== null) {
    const high = Number.parseInt(mapped[1] ?? "", 16);
    return isPrivateIpv4([high >> 8, high & 0xff]);
  }
  // fc00::/7 is unique local, fe80::/10 link local. The canonical form drops leading zeros, so four digits are needed to
  // tell fc00:: from 00fc::.
  return address === "::1" || /^f[cd][0-9a-f]{2}:/.test(address) || /^fe[89ab][0-9a-f]:/.test(address);
}
