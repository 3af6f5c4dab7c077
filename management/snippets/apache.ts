import type { Forwarder } from './forwarder.ts';
import { ANSWER_SECONDS, CONNECT_SECONDS, comment, cookieNames, preamble } from './parts.ts';

/**
 * After a match, `edit*` continues in the rest of the text, and `^` would match at its start, too. So a separator is put in
 * front, and the pattern begins with a separator. Apache joins several lines of cookies by a comma and a space.
 */
export function apacheSnippet(forwarder: Forwarder): string {
  const { edge, path, token, cookies } = forwarder;
  const tls = `<Proxy "${edge.origin}${path}/">
    SSLProxyEngine On
    SSLProxyVerify require
    SSLProxyVerifyDepth 4
    SSLProxyCheckPeerName On
    SSLProxyCheckPeerExpire On
    # Red Hat and others: /etc/pki/tls/certs/ca-bundle.crt
    SSLProxyCACertificateFile "/etc/ssl/certs/ca-certificates.crt"
    SSLProxyProtocol -all +TLSv1.2 +TLSv1.3
</Proxy>
`;
  return `${comment('#', [
    ...preamble(forwarder, 'Put it into the VirtualHost of the pages and reload Apache (2.4.30 or newer).'),
    'It needs: a2enmod proxy proxy_http ssl headers',
    'Behind a proxy or CDN of your own, set up mod_remoteip, or all visitors have the address of that proxy.',
  ])}${edge.isTls ? tls : ''}<Location "${path}/">
    ProxyPass "${edge.origin}${path}/" nocanon connectiontimeout=${CONNECT_SECONDS} timeout=${ANSWER_SECONDS} retry=0 ttl=30
    ProxyPreserveHost Off
    ProxyAddHeaders Off
    ProxyErrorOverride Off

    RequestHeader unset Authorization
    # Only the cookies that are named here are passed on.
    RequestHeader edit Cookie "^" "; "
    RequestHeader edit* Cookie "(?:;|, )(?! *(?:${cookieNames(cookies)})=)(?:(?!, )[^;])*" ""
    RequestHeader edit Cookie "^[;,] *" ""

    RequestHeader set x-tagyard-forwarder-token "${token}"
    RequestHeader set x-tagyard-visitor "expr=%{REMOTE_ADDR}"
    RequestHeader unset x-tagyard-country
    RequestHeader unset x-tagyard-region
    RequestHeader set x-tagyard-host "expr=%{HTTP_HOST}"
    RequestHeader set x-tagyard-scheme "expr=%{REQUEST_SCHEME}"
    RequestHeader set x-tagyard-scheme "https" "expr=%{HTTP:X-Forwarded-Proto} == 'https'"

    <IfModule mod_cache.c>
        CacheDisable On
    </IfModule>
</Location>
`;
}
