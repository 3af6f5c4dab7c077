// Shows the state of the loader and the tag manager (`window.tagyard`, the tag manager's globals), and sends a GA4-like
// event. It changes neither, and works if both are absent.

const { edge, problem } = document.body.dataset;
const byId = (id) => document.getElementById(id);
const loaderUrl = [...document.scripts].map(({ src }) => src).find((src) => /\/l\/[^/]+\.js/.test(src));

/** `state` sets the colour of the dot before the text: good, bad or waiting. */
function show(id, text, state = 'waiting') {
  const cell = byId(id);
  cell.textContent = text;
  cell.dataset.state = state;
}

const age = ({ isNew }) => (isNew ? 'new' : 'returning');

/** The text for each value of `tagyard.gtm`, until the tag manager's own globals exist. */
const GTM_STATES = {
  waiting: ['waits for consent', 'waiting'],
  pending: ['requested from the edge', 'waiting'],
  edge: ['loading from the edge', 'waiting'],
  direct: ['loading from the vendor', 'waiting'],
  loaded: ['loaded, but it set no globals', 'bad'],
  failed: ['could not be loaded', 'bad'],
};

let bootFailed = false;

function render() {
  const tagyard = window.tagyard ?? {};
  if (tagyard.edge !== undefined) {
    show('loader', `from ${new URL(tagyard.edge).host}`, 'good');
  } else {
    show(
      'loader',
      loaderUrl === undefined ? 'no snippet on this page' : `not loaded yet: ${loaderUrl}`,
      'bad',
    );
  }
  renderIdentity(tagyard);
  renderTags(tagyard);
}

function renderIdentity({ session, profile, restored }) {
  if (bootFailed) {
    for (const id of ['session', 'profile', 'restored']) show(id, 'unknown: the edge did not answer', 'bad');
    return;
  }
  if (session) show('session', `${session.id} (${age(session)})`, 'good');
  if (profile) show('profile', `${profile.id} (${age(profile)})`, 'good');
  else if (profile === null) show('profile', 'none: consent is withheld', 'good');
  if (restored) show('restored', restored.length === 0 ? 'nothing to restore' : restored.join(', '), 'good');
}

function renderTags({ gtm, direct }) {
  const containers = Object.keys(window.google_tag_manager ?? {}).filter((name) => name.startsWith('GTM-'));
  if (containers.length > 0) {
    show(
      'gtm',
      `ran for ${containers.join(', ')}, ${gtm === 'direct' ? 'from the vendor' : 'from the edge'}`,
      'good',
    );
  } else {
    show('gtm', ...(GTM_STATES[gtm] ?? [direct ? 'waiting' : 'has not run', direct ? 'waiting' : 'bad']));
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
    show('event', 'add_to_cart failed: the edge is down, or refuses this page by CORS', 'bad');
  }
}

for (const button of document.querySelectorAll('button[data-add]')) {
  button.addEventListener('click', () => addToBasket(button.dataset));
}
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
