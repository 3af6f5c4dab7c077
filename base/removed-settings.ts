const POINTS_SOURCE = 'traffic is summed up from the raw logs alone: set RAW_LOGS_S3_URL or RAW_LOGS_API_URL';

const ONE_PROVISIONER = 'a cluster has one provisioner, which a new pod replaces (docs/kubernetes.md)';

/** Settings of earlier releases, each with what replaces it. */
const REMOVED: ReadonlyMap<string, string> = new Map([
  ['TRAFFIC_SOURCE', POINTS_SOURCE],
  ['ANALYTICS_ENGINE_API_URL', POINTS_SOURCE],
  ['ANALYTICS_ENGINE_API_TOKEN', POINTS_SOURCE],
  ['ANALYTICS_ENGINE_ACCOUNT_ID', POINTS_SOURCE],
  ['ANALYTICS_ENGINE_DATASET', POINTS_SOURCE],
  ['CONTAINER_LOGS_LINES_PER_SECOND', 'of each container, 50 lines a second are kept'],
  ['KUBERNETES_LEASE', ONE_PROVISIONER],
  ['KUBERNETES_LEASE_SECONDS', ONE_PROVISIONER],
  ['KUBERNETES_POD_ADDRESS', ONE_PROVISIONER],
  ['MEMBERS_PER_CLIENT', 'a client or an organisation has at most 1,000 members'],
  [
    'OIDC_ISSUER',
    'people and tokens are of one provider: set AUTH_ISSUER, AUTH_JWKS_URL and AUTH_AUDIENCE to its',
  ],
  ['PGLITE_DIR', 'the embedded database is in pglite/ under STATE_DIR: move the folder there first'],
  ['STREAMS_PER_SUBJECT', 'a subject may have 100 event streams and as many exports open in one process'],
  ['TAG_SERVER_ENTRY', 'CONTAINERS_DRIVER=process runs the stand-in tag server'],
]);

/**
 * A fault for each removed setting that is still set. A daemon doesn't start with one, so that nobody takes it for
 * effective.
 */
export function removedSettings(source: NodeJS.ProcessEnv): string[] {
  return [...REMOVED]
    .filter(([name]) => source[name] !== undefined && source[name] !== '')
    .map(([name, instead]) => `${name}: no longer exists; ${instead}, and unset ${name} (CHANGELOG.md)`);
}
