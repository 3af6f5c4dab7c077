import { signalDescendant } from './signal.ts';

/** `node signal-command.ts <root> <pid> <signal>`: `signalDescendant` for the hooks of a git repository. */
const [, , root, pid, name] = process.argv;
// The test that writes the hook passes the name of a signal.
signalDescendant(Number(root), Number(pid), name as NodeJS.Signals);
