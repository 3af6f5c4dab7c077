import { Loop, type LoopDeps } from './loop.ts';
import { Operations } from './operations.ts';
import type { State, StateFile } from './state.ts';

/** A loop and its operations that continue from the saved state, and save each change of it. */
export function savedLoop(
  file: StateFile,
  known: (State & { readonly isLost?: boolean }) | null,
  deps: Omit<LoopDeps, 'operations' | 'known' | 'onChange'>,
): { readonly loop: Loop; readonly operations: Operations } {
  const onChange = () =>
    file.save(() => ({
      version: 1,
      revision: loop.revision,
      sites: loop.statuses(),
      operations: operations.all(),
    }));
  const operations = new Operations(known?.operations ?? [], onChange, deps.clock);
  const loop = new Loop({ ...deps, operations, known, onChange });
  return { loop, operations };
}
