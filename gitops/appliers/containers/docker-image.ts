import type Docker from 'dockerode';
import { RetryableError, TerminalError } from '../../base/errors.ts';
import { callDocker, unlessGone } from '../../clients/docker.ts';

/** An engine that takes longer than this to say whether it has an image is taken to hang. */
const LOOK_MS = 60_000;
/** A pull of a few hundred megabytes over a slow line. */
const PULL_MS = 10 * 60_000;

/**
 * Makes sure that an image is on this host; a pinned one of a registry is pulled. `TerminalError` where it can't be
 * had from anywhere: a local id that isn't here, a digest that the registry doesn't know.
 */
export async function ensureImage(docker: Docker, image: string, signal: AbortSignal): Promise<void> {
  const found = look(docker, image, AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS)]));
  if ((await unlessGone(callDocker(`looking for ${image}`, found))) !== null) return;
  if (image.startsWith('sha256:')) throw new TerminalError(`there is no image ${image} on this host`);

  const abortSignal = AbortSignal.any([signal, AbortSignal.timeout(PULL_MS)]);
  const progress = await callDocker(`pulling ${image}`, docker.pull(image, { abortSignal }));
  // What goes wrong after the first byte comes as a line of the progress, which the library makes an error of.
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  docker.modem.followProgress(progress, (error) => (error ? reject(error) : resolve()));
  await promise.catch((cause: unknown) => {
    throw new RetryableError(`${image} could not be pulled: ${String(cause)}`, { cause });
  });
}

/** The library's own `inspect()` of an image hands no signal on, unlike that of a container. */
function look(docker: Docker, image: string, abortSignal: AbortSignal): Promise<true> {
  const { promise, resolve, reject } = Promise.withResolvers<true>();
  const question = { path: `/images/${image}/json`, method: 'GET', statusCodes: { 200: true }, abortSignal };
  docker.modem.dial(question, (error: unknown) => (error === null ? resolve(true) : reject(error)));
  return promise;
}
