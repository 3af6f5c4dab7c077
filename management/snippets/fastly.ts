import type { Forwarder } from './forwarder.ts';
import { ANSWER_SECONDS, CONNECT_SECONDS, comment, cookieNames, nameOf, preamble } from './parts.ts';

export function fastlySnippet(forwarder: Forwarder): string {
  const { edge, path, token, cookies } = forwarder;
  const name = `F_${nameOf(forwarder)}`;
  const tls = `
  .ssl = true;
  .ssl_check_cert = always;
  .ssl_cert_hostname = "${edge.host}";
  .ssl_sni_hostname = "${edge.host}";
  .min_tls_version = "1.2";`;
  return `${comment('#', [
    ...preamble(
      forwarder,
      "Two VCL snippets for the Fastly service that serves the pages. Replace SERVICE_ID with that service's id.",
    ),
  ])}
# 1. Type: init
backend ${name} {
  .dynamic = true;
  .share_key = "SERVICE_ID";
  .host = "${edge.host}";
  .port = "${edge.port}";${edge.isTls ? tls : ''}
  .host_header = "${edge.authority}";
  .always_use_host_header = true;
  .connect_timeout = ${CONNECT_SECONDS}s;
  .first_byte_timeout = ${ANSWER_SECONDS}s;
  .between_bytes_timeout = 10s;
}

# 2. Type: recv
if (req.url.path ~ "^${path}/") {
  # Only the first POP sees the visitor's address; at a shield, client.ip is that POP's.
  if (fastly.ff.visits_this_service == 0 && req.restarts == 0) {
    set req.http.x-tagyard-visitor = client.ip;
    set req.http.x-tagyard-country = client.geo.country_code;
    set req.http.x-tagyard-region = client.geo.region;
    set req.http.x-tagyard-host = req.http.host;
    set req.http.x-tagyard-scheme = if(req.is_ssl, "https", "http");
  }
  set req.http.x-tagyard-forwarder-token = "${token}";
  unset req.http.Authorization;
  # Only the cookies that are named here are passed on.
  if (req.http.Cookie) {
    set req.http.Cookie = "; " req.http.Cookie;
    set req.http.Cookie = regsuball(req.http.Cookie, ";(?! *(?:${cookieNames(cookies)})=)[^;]*", "");
    set req.http.Cookie = regsub(req.http.Cookie, "^; *", "");
  }
  if (req.http.Cookie == "") {
    unset req.http.Cookie;
  }
  set req.backend = ${name};
  return(pass);
}
`;
}
