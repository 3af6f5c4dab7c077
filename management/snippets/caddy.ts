import type { Forwarder } from './forwarder.ts';
import { ANSWER_SECONDS, CONNECT_SECONDS, comment, cookieNames, preamble } from './parts.ts';

/**
 * Caddy’s expressions (RE2) have no negation. So an allowed cookie is replaced by `;` and itself, and any other by `;`
 * alone, because a replacement can’t be empty. Then surplus separators are removed.
 */
export function caddySnippet(forwarder: Forwarder): string {
  const { edge, path, token, cookies } = forwarder;
  const tls = `
            tls
            tls_server_name ${edge.host}`;
  return `${comment('#', [
    ...preamble(forwarder, 'Put it into the site block of the pages and reload Caddy (2.5 or newer).'),
    'Behind your own proxy or CDN, set trusted_proxies and replace {remote_host} by {client_ip} (2.7).',
  ])}handle ${path}/* {
    reverse_proxy ${edge.origin} {
        header_up Host ${edge.authority}
        header_up -Authorization
        # Only the cookies that are named here are passed on.
        header_up Cookie "(?:^|; *)(?:((?:${cookieNames(cookies)})=[^;]*)|[^;]*)" ";$1"
        header_up Cookie "^[; ]*(.*?)[; ]*$" "$1"
        header_up Cookie ";[; ]*" "; "
        header_up -X-Forwarded-For
        header_up -X-Forwarded-Host
        header_up -X-Forwarded-Proto
        header_up x-tagyard-forwarder-token "${token}"
        header_up x-tagyard-visitor {remote_host}
        header_up -x-tagyard-country
        header_up -x-tagyard-region
        header_up x-tagyard-host {hostport}
        header_up x-tagyard-scheme {scheme}
        transport http {${edge.isTls ? tls : ''}
            dial_timeout ${CONNECT_SECONDS}s
            response_header_timeout ${ANSWER_SECONDS}s
        }
    }
}
`;
}
