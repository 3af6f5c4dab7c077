import type Docker from 'dockerode';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import { callDocker, unlessGone } from '../../clients/docker.ts';

/** An engine that takes longer than this to answer is assumed to hang. */
const INSPECT_TIMEOUT_MS = 60_000;
/** Enough for a few hundred megabytes over a slow line. */
const PULL_TIMEOUT_MS = 10 * 60_000;

/**
 * Makes sure that an image is on this host. Pulls a missing image if it has a registry. Throws `TerminalError` if the
 * image doesn't exist: a local id that isn't on this host, or a digest that the registry doesn't have.
 */
export async function ensureImage(docker: Docker, image: string, signal: AbortSignal): Promise<void> {
  const found = inspectImage(
    docker,
    image,
    AbortSignal.any([signal, AbortSignal.timeout(INSPECT_TIMEOUT_MS)]),
  );
  if ((await unlessGone(callDocker(`inspecting ${image}`, found))) !== null) return;
  if (image.startsWith('sha256:')) throw new TerminalError(`there is no image ${image} on this host`);

  const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(PULL_TIMEOUT_MS)]);
  const progress = await callDocker(`pulling ${image}`, docker.pull(image, { abortSignal }));
  // After the first byte, the engine reports errors in the progress stream, and dockerode rejects with them.
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve()));
  await promise.catch((cause: unknown) => {
    throw new RetryableError(`${image} could not be pulled: ${String(cause)}`, { cause });
  });
}

/** Dockerode's `inspect()` of a container uses the signal, but its `inspect()` of an image ignores it. */
function inspectImage(docker: Docker, image: string, abortSignal: AbortSignal): Promise<true> {
  const { promise, resolve, reject } = Promise.withResolvers<true>();
  const request = { path: `/images/${image}/json`, method: 'GET', statusCodes: { 200: true }, abortSignal };
  docker.modem.dial(request, (error: unknown) => (error === null ? resolve(true) : reject(error)));
  return promise;
}
