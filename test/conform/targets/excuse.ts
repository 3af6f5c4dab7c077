/** What Node says where a host can't be reached. */
const NETWORK =
  /\bE(?:NOTFOUND|AI_AGAIN|CONNREFUSED|CONNRESET|TIMEDOUT|NETUNREACH|HOSTUNREACH)\b|\bUND_ERR_CONNECT/;
const REFUSED = /server\.js[^\n]*\b4\d\d\b/;

/**
 * Why the output of a server that ended is no evidence against the image; `null`: it is. `isMadeUp`: the server was
 * started with a container that Google can't know.
 */
export function excuseFor(output: string, { isMadeUp }: { isMadeUp: boolean }): string | null {
  const line = output.split('\n').find((one) => NETWORK.test(one));
  if (line !== undefined) return `the container can't reach Google: ${line.trim()}`;
  if (isMadeUp && REFUSED.test(output)) {
    return 'set CONFORM_CONTAINER_CONFIG: Google refuses a made-up container (docs/conformance.md)';
  }
  return null;
}
