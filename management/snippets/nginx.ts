import type { Forwarder } from './forwarder.ts';
import { ANSWER_SECONDS, CONNECT_SECONDS, comment, cookieName, preamble } from './parts.ts';

/**
 * nginx can't replace all matches, so there is one `if` per allowed name that takes its cookie, or up to four cookies
 * of a prefix. An `if` with nothing but `set` is safe in a location (ngx_http_rewrite_module has the same example).
 */
export function nginxSnippet(forwarder: Forwarder): string {
  const { edge, path, token, cookies } = forwarder;
  const tls = `
    proxy_ssl_server_name on;
    proxy_ssl_name ${edge.host};
    proxy_ssl_verify on;
    proxy_ssl_verify_depth 4;
    # Red Hat and others: /etc/pki/tls/certs/ca-bundle.crt
    proxy_ssl_trusted_certificate /etc/ssl/certs/ca-certificates.crt;
    proxy_ssl_protocols TLSv1.2 TLSv1.3;
`;
  return `${comment('#', [
    ...preamble(forwarder, 'Put it into the server block of the pages, run nginx -t and reload nginx.'),
    `nginx finds the address of ${edge.host} when it starts. Reload it after that address has changed.`,
    'Let that server speak HTTP/2: `listen 443 ssl http2`, since nginx 1.25.1 `http2 on`. Pages have many requests here.',
    'Behind a proxy or CDN of your own, set real_ip_header and set_real_ip_from, or all visitors have the address of that proxy.',
  ])}location ^~ ${path}/ {
    # Only these cookies are passed on.
    set $tagyard_cookies "";
${cookies.map(takeCookie).join('')}    if ($tagyard_cookies ~ "^(.+); $") { set $tagyard_cookies $1; }

    set $tagyard_host $http_host;
    if ($tagyard_host = "") { set $tagyard_host $host; }
    set $tagyard_scheme $scheme;
    if ($http_x_forwarded_proto = "https") { set $tagyard_scheme "https"; }

    # The edge takes no longer bodies; nginx’s default is 1m.
    client_max_body_size 8m;
    proxy_pass ${edge.origin};
    proxy_http_version 1.1;
    proxy_set_header Host ${edge.authority};
    proxy_set_header Connection "";
    proxy_set_header Cookie $tagyard_cookies;
    proxy_set_header Authorization "";
    proxy_set_header x-tagyard-forwarder-token "${token}";
    proxy_set_header x-tagyard-visitor $remote_addr;
    proxy_set_header x-tagyard-host $tagyard_host;
    proxy_set_header x-tagyard-scheme $tagyard_scheme;
    proxy_set_header x-tagyard-country "";
    proxy_set_header x-tagyard-region "";
${edge.isTls ? tls : ''}
    proxy_connect_timeout ${CONNECT_SECONDS}s;
    proxy_send_timeout 10s;
    proxy_read_timeout ${ANSWER_SECONDS}s;
    # An answer may set 50 cookies. By default nginx reads 4 kB of headers, and answers 502 for more.
    proxy_buffer_size 32k;
    proxy_buffers 8 32k;
    proxy_busy_buffers_size 64k;
    proxy_cache off;
    proxy_redirect off;
    proxy_intercept_errors off;
}
`;
}

function takeCookie(pattern: string): string {
  const one = `${cookieName(pattern)}=[^;]*`;
  const first = `(?:^|; ?)(${one})`;
  const [regex, taken] = pattern.endsWith('*')
    ? [`${first}${`(?:.*?(; ?${one}))?`.repeat(3)}`, '$1$2$3$4']
    : [first, '$1'];
  return `    if ($http_cookie ~ "${regex}") { set $tagyard_cookies "\${tagyard_cookies}${taken}; "; }\n`;
}
