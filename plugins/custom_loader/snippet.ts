/**
 * The values of one domain's snippet. `edgeUrl` is the edge's base URL, or the path under which the pages' own server
 * forwards to it. `vendorUrl` is the base URL of the vendor's scripts. Both are without a slash at the end.
 */
export interface SnippetOptions {
  readonly edgeUrl: string;
  readonly loaderToken: string;
  readonly webTagId: string;
  readonly vendorUrl?: string;
  /** The page must not load the vendor's script before the loader allows it. */
  readonly waits?: boolean;
}

/** How long a page waits for the edge before it loads the vendor's script itself. */
const EDGE_TIMEOUT_MS = 3000;

/**
 * The HTML to paste into a page's head, once. It loads the first-party loader. If that fails, or the web tag is not
 * being loaded in time, it loads the vendor's `gtm.js` directly once (not if it `waits`). Both get the snippet's nonce.
 * Each script is preloaded, and added after it has arrived: if the server hangs, a script would delay the page's `load`
 * event, but a preload doesn't. If the page's CSP or the browser refuses preloads, the script is added directly. A page
 * with `require-trusted-types-for 'script'` must allow the policies `tagyard` (snippet) and `tagyard-loader` (loader).
 * Calls of `tagyard.consent.update` are kept for the loader. The edge's scripts are requested without credentials: a
 * browser would otherwise send the cookies of the site's domain to an edge hostname under that domain.
 */
export function renderSnippet({
  edgeUrl,
  loaderToken,
  webTagId,
  vendorUrl = 'https://www.googletagmanager.com',
  waits = false,
}: SnippetOptions): string {
  const loader = `${edgeUrl}/l/${encodeURIComponent(loaderToken)}.js`;
  const vendor = new URL('/gtm.js', vendorUrl);
  vendor.searchParams.set('id', webTagId);
  return `<script>
(function(w,d,u,v,t,n,p,c){
t=w.tagyard=w.tagyard||{};if(t.direct)return;${waits ? 't.tried=true;' : ''}
c=t.consent=t.consent||{};c.update=c.update||function(o){(t.updates=t.updates||[]).push(o)};
n=(d.currentScript||{}).nonce;
try{p=w.trustedTypes.createPolicy('tagyard',{createScriptURL:function(s){return s}})}catch(e){}
t.add=function(src,load,fail){var s=d.createElement('script'),l=d.createElement('link');
s.async=true;s.referrerPolicy='no-referrer';if(src!==v)s.crossOrigin=l.crossOrigin='anonymous';s.src=p?p.createScriptURL(src):src;if(n)s.nonce=n;s.onload=load;s.onerror=fail;
function run(){d.head.appendChild(s)}
if(!l.relList||!l.relList.supports||!l.relList.supports('preload'))return run();
l.rel='preload';l.as='script';l.fetchPriority='low';l.referrerPolicy='no-referrer';l.href=src;if(n)l.nonce=n;
l.onload=run;l.onerror=function(){if(src!==u||!t.gtm)run()};d.head.appendChild(l)};
t.direct=function(){if(t.gtm&&t.gtm!=='pending'&&t.gtm!=='failed'||t.tried)return;t.tried=true;t.gtm='direct';
if(!t.started){t.started=true;(w.dataLayer=w.dataLayer||[]).push({'gtm.start':Date.now(),event:'gtm.js'})}
t.add(v,function(){t.gtm='loaded'},function(){t.gtm='failed'})};
t.add(u,null,t.direct);${waits ? '' : `setTimeout(t.direct,${EDGE_TIMEOUT_MS});`}
})(window,document,${literal(loader)},${literal(vendor.href)});
</script>`;
}

/**
 * The HTML for a page that has no origin of its own: a sandboxed frame, such as a pixel of a shop. The loader can't
 * identify a visitor there, because `/boot` refuses the origin `null`; so the page loads the container's script from the
 * edge at once. `edgeUrl` is the edge's base URL.
 */
export function renderSandboxSnippet({
  edgeUrl,
  containerToken,
}: {
  readonly edgeUrl: string;
  readonly containerToken: string;
}): string {
  return `<script>
(function(w,d,u,s){
(w.dataLayer=w.dataLayer||[]).push({'gtm.start':Date.now(),event:'gtm.js'});
s=d.createElement('script');s.async=true;s.crossOrigin='anonymous';s.src=u;d.head.appendChild(s);
})(window,document,${literal(`${edgeUrl}/c/${encodeURIComponent(containerToken)}.js`)});
</script>`;
}

/** A JSON literal without characters that could end the script element or a line in it. */
function literal(value: string): string {
  return JSON.stringify(value).replace(
    /[<>\u2028\u2029]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
