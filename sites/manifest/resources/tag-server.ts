/** How the tag server's image runs, in Docker as in a cluster (docs/facts.md, Image). */
export const TAG_SERVER = {
  /** Distroless's `nonroot`, as user and group. */
  user: 65532,
  /** Where a container reads the key of its service account. */
  keyFile: '/etc/tagyard/service-account.json',
  /** The size of /tmp, the only writable folder: `16m` is 16 MiB in memory. */
  temporary: '16m',
  /**
   * The most octets of a request's line and headers. Node's own limit is 16 KiB; this one is that of nginx, which is in
   * front (4 KiB and eight lines of 64 KiB), and room for the headers that nginx adds.
   */
  maxHeaderOctets: (4 + 8 * 64 + 16) * 1024,
} as const;
