#!/usr/bin/env node
import { CliError } from './cli/output/cli-error.ts';
import { program } from './cli/program.ts';

try {
  await program(process.env).parseAsync();
} catch (error) {
  if (!(error instanceof CliError)) throw error;
  process.stderr.write(`tagyard: ${error.message}\n`);
  process.exitCode = 1;
}
