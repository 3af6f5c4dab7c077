/** A module of workerd for its own bindings. A wrapped binding, such as analytics.ts, can import it, too. */
declare module 'cloudflare-internal:workers' {
  const workers: { waitUntil(work: Promise<unknown>): void };
  export default workers;
}
