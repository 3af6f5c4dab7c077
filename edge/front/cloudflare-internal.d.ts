/** What the runtime's own bindings import. A binding that a worker wraps can import the same. */
declare module 'cloudflare-internal:workers' {
  const workers: { waitUntil(work: Promise<unknown>): void };
  export default workers;
}
