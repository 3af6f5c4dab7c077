import type { Forwarder } from './forwarder.ts';
import { ANSWER_SECONDS, CONNECT_SECONDS, comment, cookieNames, nameOf, preamble } from './parts.ts';

export function haproxySnippet(forwarder: Forwarder): string {
  const { edge, path, token, cookies } = forwarder;
  const name = nameOf(forwarder);
  const tls = ` ssl verify required verifyhost ${edge.host} sni str(${edge.host}) ssl-min-ver TLSv1.2 ca-file /etc/ssl/certs/ca-certificates.crt`;
  return `${comment('#', [
    ...preamble(
      forwarder,
      'Append it to the frontend that serves the pages. The lines acl and use_backend belong to that frontend; the rest is a backend of its own. HAProxy 2.4 or newer.',
    ),
    'If the frontend has use_backend rules, put the lines acl and use_backend above them.',
    'An answer may set 50 cookies. If they are more than 15 kB, set tune.bufsize 32768 in the global section.',
    'Behind a proxy or CDN of your own, replace %[src] by its header with the address of the visitor, or all visitors have the address of that proxy.',
  ])}    acl ${name} path_beg ${path}/
    use_backend ${name} if ${name}

backend ${name}
    mode http
    timeout connect ${CONNECT_SECONDS}s
    timeout server ${ANSWER_SECONDS}s
    http-request set-header x-tagyard-forwarder-token ${token}
    http-request set-header x-tagyard-visitor %[src]
    http-request del-header x-tagyard-country
    http-request del-header x-tagyard-region
    http-request set-header x-tagyard-host %[req.hdr(host)]
    http-request set-header x-tagyard-scheme https
    http-request set-header x-tagyard-scheme http if !{ ssl_fc } !{ req.hdr(x-forwarded-proto) https }
    http-request set-header host ${edge.authority}
    http-request del-header authorization
    # Only the cookies that are named here are passed on.
    http-request set-header cookie "; %[req.fhdr(cookie)]"
    http-request set-var(req.tagyard) 'req.fhdr(cookie),regsub(";(?! *(?:${cookieNames(cookies)})=)[^;]*","",g),regsub("^; *","")'
    http-request set-header cookie %[var(req.tagyard)]
    http-request del-header cookie if !{ req.fhdr(cookie) -m reg . }
    # The name is resolved when HAProxy starts. Its address can change: to follow it, add \`resolvers <id>\`, with the id of
    # a resolvers section, to the next line.
    server edge ${edge.host}:${edge.port}${edge.isTls ? tls : ''} init-addr last,libc,none
`;
}
