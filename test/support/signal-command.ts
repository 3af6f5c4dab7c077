import { signalDescendant } from './signal.ts';

/** `node signal-command.ts <root> <pid> <signal>`: `signalDescendant` for the hooks of a git repository. */
const [, , root, pid, name] = process.argv;
signalDescendant(Number(root), Number(pid), name as NodeJS.Signals); // the test that writes the hook gives its name
