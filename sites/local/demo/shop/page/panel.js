// Shows the state of the loader and the tag manager (`window.tagyard`, the tag manager's globals), and sends a GA4-like
// event. It changes neither, and works if both are absent. Its switches do what visitors and their browsers do.

const { edge, problem, blocked } = document.body.dataset;
const { scripts, choice, choose } = window.shop;
const byId = (id) => document.getElementById(id);
/** The snippet preloads the loader before it adds the script. */
const findLoader = () =>
  [...document.querySelectorAll('script[src], link[as=script]')]
    .map(({ src, href }) => src ?? href)
    .find((url) => /\/l\/[^/]+\.js/.test(url));

/** `state` sets the colour of the dot before the text: good, bad or waiting. */
function show(id, text, state = 'waiting') {
  const cell = byId(id);
  cell.textContent = text;
  cell.dataset.state = state;
}

const age = ({ isNew }) => (isNew ? 'new' : 'returning');

/** The text for each value of `tagyard.gtm` while no script has arrived. */
const GTM_STATES = {
  waiting: ['nothing: waits for consent', 'waiting'],
  pending: ['nothing yet: asking the edge', 'waiting'],
  edge: ['loading from the edge', 'waiting'],
  direct: ['loading from the vendor, as the edge did not serve it', 'waiting'],
  failed: ['nothing: neither the edge nor the vendor served it', 'bad'],
};

/** The tag manager's script: `/c/<token>.js` of the edge, `/gtm.js` of the vendor. */
const isTagScript = ({ url }) => /\/(?:c\/[^/]+\.js|gtm\.js)$/.test(new URL(url).pathname);

/** Where a script that has arrived came from, by its own address. */
function sourceOf(url) {
  const { origin, host, pathname } = new URL(url);
  if (origin === location.origin) return 'from this shop’s own origin';
  return pathname.endsWith('/gtm.js')
    ? `from the vendor ${host}, as the edge did not serve it`
    : `from the edge ${host}`;
}

let bootFailed = false;

function render() {
  const tagyard = window.tagyard ?? {};
  renderLoader();
  renderConsent(tagyard);
  renderIdentity(tagyard);
  renderTags(tagyard);
}

function renderLoader() {
  const loaderUrl = findLoader();
  const arrival = scripts.find(({ url }) => url === loaderUrl);
  if (loaderUrl === undefined) show('loader', 'no snippet on this page', 'bad');
  else if (arrival === undefined) show('loader', `not loaded yet: ${loaderUrl}`);
  else if (arrival.isLoaded) show('loader', sourceOf(loaderUrl), 'good');
  else show('loader', `${blocked === undefined ? 'failed' : 'blocked'}: ${loaderUrl}`, 'bad');
}

function renderConsent({ choices = {} }) {
  const chosen = choices.analytics_storage ?? choice();
  show('consent', chosen ?? 'no choice yet', chosen === undefined ? 'waiting' : 'good');
  for (const button of document.querySelectorAll('[data-choose]')) {
    button.setAttribute('aria-pressed', String(button.dataset.choose === chosen));
  }
}

function renderIdentity({ session, profile, restored }) {
  const isLoaderLost = scripts.some(({ url, isLoaded }) => url === findLoader() && !isLoaded);
  if (bootFailed || isLoaderLost) {
    const reason = isLoaderLost ? 'none: the loader did not arrive' : 'unknown: the edge did not answer';
    for (const id of ['session', 'profile', 'restored']) show(id, reason, 'bad');
    return;
  }
  if (session) show('session', `${session.id} (${age(session)})`, 'good');
  if (profile) show('profile', `${profile.id} (${age(profile)})`, 'good');
  else if (profile === null) show('profile', 'none: consent is withheld', 'good');
  if (restored) show('restored', restored.length === 0 ? 'nothing to restore' : restored.join(', '), 'good');
}

function renderTags({ gtm, direct }) {
  const containers = Object.keys(window.google_tag_manager ?? {}).filter((name) => name.startsWith('GTM-'));
  const arrived = scripts.findLast((script) => script.isLoaded && isTagScript(script));
  if (arrived !== undefined && containers.length > 0) {
    show('gtm', `ran for ${containers.join(', ')}, ${sourceOf(arrived.url)}`, 'good');
  } else if (arrived !== undefined) {
    show('gtm', `arrived ${sourceOf(arrived.url)}, but it set no globals`, 'bad');
  } else {
    show('gtm', ...(GTM_STATES[gtm] ?? ['nothing has loaded', direct ? 'waiting' : 'bad']));
  }
  const pushed = [...(window.dataLayer ?? [])].map(({ event }) => event).filter(Boolean);
  show(
    'data-layer',
    pushed.length === 0 ? 'empty' : pushed.join(', '),
    pushed.length === 0 ? 'waiting' : 'good',
  );
}

function basketSize(add = 0) {
  const size = Number(sessionStorage.getItem('basket') ?? 0) + add;
  sessionStorage.setItem('basket', String(size));
  byId('basket').textContent = String(size);
}

/** The names are GA4's own (Measurement Protocol over `/g/collect`, version 2). */
function eventUrl({ add: id, name, price }) {
  const url = new URL('/g/collect', edge);
  url.search = new URLSearchParams({
    v: '2',
    tid: 'G-DEMO',
    cid: window.tagyard?.profile?.id ?? 'anonymous',
    sid: window.tagyard?.session?.id ?? '',
    dl: location.href,
    dt: document.title,
    en: 'add_to_cart',
    pr1: `id${id}~nm${name}~pr${price}~qt1`,
    'epn.value': price,
    'ep.currency': 'EUR',
  }).toString();
  return url;
}

async function addToBasket(product) {
  basketSize(1);
  window.dataLayer?.push({ event: 'add_to_cart', ecommerce: { items: [{ item_id: product.add }] } });
  if (edge === undefined) {
    show('event', 'add_to_cart not sent: the edge is not known yet', 'bad');
    return;
  }
  show('event', 'sending add_to_cart');
  try {
    const answer = await fetch(eventUrl(product), {
      method: 'POST',
      credentials: 'include',
      keepalive: true,
    });
    show(
      'event',
      `add_to_cart: ${answer.status} from ${new URL(answer.url).host}`,
      answer.ok ? 'good' : 'bad',
    );
  } catch {
    show(
      'event',
      blocked === undefined
        ? 'add_to_cart failed: the edge is down, or refuses this page by CORS'
        : 'add_to_cart not sent: the edge is blocked',
      'bad',
    );
  }
}

for (const button of document.querySelectorAll('button[data-add]')) {
  button.addEventListener('click', () => addToBasket(button.dataset));
}
/** A cookie of the shop itself, for this visit. `null` deletes it. */
function keep(name, value) {
  // biome-ignore lint/suspicious/noDocumentCookie: CookieStore is absent from two of the three engines.
  document.cookie = `${name}=${value ?? ''}; Path=/; SameSite=Lax${value === null ? '; Max-Age=0' : ''}`;
}

/** `run` fails only where the shop itself does not answer. */
function onClick(button, run) {
  button.addEventListener('click', async () => {
    try {
      await run(button);
    } catch {
      byId('outcome').textContent = 'The shop did not answer. Try again.';
    }
  });
}

for (const each of document.querySelectorAll('[data-choose]')) {
  onClick(each, ({ dataset }) => {
    keep('shop_consent', dataset.choose);
    choose(dataset.choose);
    render();
  });
}
onClick(byId('lose-cookies'), async () => {
  await fetch('/cookies', { method: 'DELETE' });
  location.reload();
});
onClick(byId('block-edge'), () => {
  keep('shop_edge', blocked === undefined ? 'blocked' : null);
  location.reload();
});
onClick(byId('be-bot'), async () => {
  const { agent, status, hasProfile, error } = await (await fetch('/bot-visits', { method: 'POST' })).json();
  byId('outcome').textContent =
    error === undefined
      ? `As ${agent}: the edge answered ${status}, and ${hasProfile ? 'keeps a profile' : 'keeps nothing of the visit'}.`
      : `The bot’s visit failed: ${error}.`;
});
if (problem !== undefined) {
  byId('problem').hidden = false;
  byId('problem').textContent = `No snippet: ${problem}. The shop works without its tags.`;
}
basketSize();
render();
// The loader sends no event when it starts, and may start late or never, so the panel polls.
let watched;
setInterval(() => {
  const booted = window.tagyard?.booted;
  if (booted !== watched) {
    watched = booted;
    booted?.then((answer) => {
      bootFailed = answer === null;
    });
  }
  render();
}, 250);
