/** How the tag server's image runs, in Docker as in a cluster (docs/facts.md, Image). */
export const TAG_SERVER = {
  /** Distroless's `nonroot`, as user and group. */
  user: 65532,
  /** Where a container reads the key of its service account. */
  keyFile: '/etc/tagyard/service-account.json',
  /** The size of /tmp, the only writable folder: `16m` is 16 MiB in memory. */
  temporary: '16m',
} as const;
