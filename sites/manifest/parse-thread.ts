import { parentPort } from 'node:worker_threads';
import { parseManifest } from './load.ts';
import type { ParseJob } from './parse-threads.ts';

/** A thread of `parse-threads.ts`: answers each text with its parsed manifest. */
parentPort?.on('message', ({ text, file }: ParseJob) => parentPort?.postMessage(parseManifest(text, file)));
