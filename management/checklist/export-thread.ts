import { parentPort, workerData } from 'node:worker_threads';
import { fieldErrors } from '../../base/http/problem.ts';
import { containerExport, judgeExport } from './container-export.ts';
import type { ExportAnswer, ExportJob } from './export-threads.ts';

/** A thread of `export-threads.ts`. */
function answer({ text, site }: ExportJob): ExportAnswer {
  let given: unknown;
  try {
    given = JSON.parse(text.replace(/^\ufeff/, '')); // some editors begin a file with a byte order mark
  } catch {
    return { errors: null };
  }
  const { success, data, error } = containerExport.safeParse(given);
  return success ? { verdicts: judgeExport(data, site) } : { errors: fieldErrors(error.issues) };
}

parentPort?.postMessage(answer(workerData as ExportJob)); // what `judgeInThread` sends
