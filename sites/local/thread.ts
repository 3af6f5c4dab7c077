import { EventEmitter } from 'node:events';
import { createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import { Worker } from 'node:worker_threads';

interface ThreadOptions {
  readonly name: string;
  readonly script: string;
  readonly env: Readonly<Record<string, string>>;
  /** The script's output and the error that ends it are appended to this file. */
  readonly logFile: string;
}

/**
 * A script in a thread of this process, which a supervisor starts and ends like a process. It needs less memory than
 * another Node process. The script posts its messages to its `parentPort`, and ends when it gets the message `stop`.
 */
export class Thread extends EventEmitter {
  readonly pid = null;
  readonly stdout = null;
  readonly stderr = null;
  exitCode: number | null = null;
  signalCode: NodeJS.Signals | null = null;
  readonly #worker: Worker;

  constructor({ name, script, env, logFile }: ThreadOptions) {
    super();
    const worker = new Worker(script, {
      name,
      env: { ...process.env, ...env },
      execArgv: ['--disable-warning=ExperimentalWarning'],
      stdout: true,
      stderr: true,
    });
    this.#worker = worker;
    const log = createWriteStream(logFile, { flags: 'a', mode: 0o600 });
    const output = [worker.stdout, worker.stderr];
    for (const stream of output) stream.pipe(log, { end: false });
    // If the disk is full, the log is lost, but the process continues.
    log.on('error', () => {
      for (const stream of output) stream.unpipe(log).resume();
    });
    worker.on('message', (message) => this.emit('message', message));
    worker.on('error', (error) => log.write(`${error instanceof Error ? error.stack : String(error)}\n`));
    worker.once('exit', async (code) => {
      await Promise.allSettled(output.map((stream) => finished(stream)));
      if (log.destroyed) this.#end(code);
      else log.end(() => this.#end(code));
    });
  }

  /** SIGTERM asks the script to end; any other signal ends it at once. */
  kill(signal: NodeJS.Signals): boolean {
    if (signal === 'SIGTERM') {
      this.#worker.postMessage('stop');
    } else {
      this.signalCode ??= signal;
      void this.#worker.terminate();
    }
    return true;
  }

  #end(code: number): void {
    if (this.signalCode === null) this.exitCode = code;
    this.emit('exit', this.exitCode, this.signalCode);
  }
}
