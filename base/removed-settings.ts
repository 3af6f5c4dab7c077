const POINTS_SOURCE = 'traffic is summed up from the raw logs alone: set RAW_LOGS_S3_URL or RAW_LOGS_API_URL';

/** Settings of earlier releases, each with what replaces it. */
const REMOVED: ReadonlyMap<string, string> = new Map([
  ['TRAFFIC_SOURCE', POINTS_SOURCE],
  ['ANALYTICS_ENGINE_API_URL', POINTS_SOURCE],
  ['ANALYTICS_ENGINE_API_TOKEN', POINTS_SOURCE],
  ['ANALYTICS_ENGINE_ACCOUNT_ID', POINTS_SOURCE],
  ['ANALYTICS_ENGINE_DATASET', POINTS_SOURCE],
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
