/** A name, a mail address, a card, a token, an id and an IP address: each in every request, in many places. */
export const SECRETS = [
  'Erika',
  'Mustermann',
  'example.invalid',
  '4111111111111111',
  'eyJnZWhlaW0tdG9rZW4',
  '0f1e2d3c4b5a69788796a5b4c3d2e1f0',
  '203.0.113.77',
] as const;
const [NAME, SURNAME, , CARD, TOKEN, ID, ADDRESS] = SECRETS;
const TEXT = [NAME, SURNAME, CARD, TOKEN, ID].join('.');
const MAIL = encodeURIComponent(`${NAME}.${SURNAME}+${TOKEN}@example.invalid`);

interface StrangerRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'OPTIONS';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Requests with the secrets in every field that a visitor’s browser, or a stranger without one, can choose. */
export function strangerRequests({ loader, token, page }: Record<'loader' | 'token' | 'page', string>) {
  const headers = {
    'x-request-id': TEXT,
    'x-tagyard-request-id': TEXT,
    'x-tagyard-probe': TEXT,
    'trace-id': TEXT,
    traceparent: `00-${ID}-0123456789abcdef-01`,
    'user-agent': `Mozilla/5.0 ${TEXT}`,
    referer: `${page}/${TEXT}?mail=${MAIL}`,
    cookie: `_ga=${TEXT}; session=${TOKEN}; ${NAME}=${MAIL}`,
    'cf-connecting-ip': ADDRESS,
    'x-forwarded-for': ADDRESS,
    'x-forwarded-country': NAME,
    'accept-language': TEXT,
    'if-none-match': `"${TEXT}"`,
    authorization: `Bearer ${TOKEN}`,
    [`x-${NAME}`]: TEXT,
  };
  const query = `?v=2&tid=G-1&cid=${MAIL}&uid=${ID}&en=${MAIL}&ep.name=${MAIL}&gcs=${MAIL}&dl=${MAIL}&dr=${MAIL}`;
  const line = `en=${MAIL}&ep.mail=${MAIL}&en=${TEXT}`;
  const json = JSON.stringify({ events: [{ name: TEXT, params: { mail: MAIL } }], user_id: ID });
  const boot = { loader, cookies: { _ga: TEXT, [NAME]: TEXT }, url: `${page}/${TEXT}`, referrer: TEXT };
  const mark = { loader, session: { id: ID }, signals: { [NAME]: true, adblock: true } };
  const origin = { ...headers, origin: page };
  const requests: StrangerRequest[] = [
    { method: 'GET', path: `/g/collect${query}`, headers },
    { method: 'POST', path: `/g/collect${query}`, headers, body: `${line}\r\n${line}\nen= ${TEXT}\n${TEXT}` },
    { method: 'POST', path: `/mp/collect${query}`, headers, body: json },
    { method: 'GET', path: `/${MAIL}/${TEXT}${query}`, headers },
    { method: 'POST', path: `/${MAIL}/g/collect${query}`, headers, body: line },
    { method: 'GET', path: `/l/${TEXT}.js${query}`, headers },
    { method: 'GET', path: `/c/${TEXT}.js${query}`, headers },
    { method: 'GET', path: `/l/${loader}.js${query}`, headers },
    { method: 'GET', path: `/c/${token}.js${query}&l=${MAIL}`, headers },
    { method: 'POST', path: `/boot${query}`, headers: origin, body: JSON.stringify(boot) },
    { method: 'POST', path: '/boot', headers: { ...headers, origin: `https://${NAME}.invalid` }, body: TEXT },
    { method: 'POST', path: '/mark-session-detection', headers: origin, body: JSON.stringify(mark) },
    { method: 'PUT', path: `/${TEXT}`, headers, body: TEXT },
    { method: 'OPTIONS', path: `/g/collect${query}`, headers: origin },
  ];
  return requests;
}

/** The secrets that are in the text. Percent-encoding doesn't change them: they have only unreserved characters. */
export const secretsIn = (text: string): string[] => {
  const lower = text.toLowerCase();
  return SECRETS.filter((secret) => lower.includes(secret.toLowerCase()));
};
