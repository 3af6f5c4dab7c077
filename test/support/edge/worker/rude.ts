import { PLUGINS } from '../../../../plugins/index.ts';
import { RUDE_PLUGINS } from './rude-plugins.ts';
import TestWorker from './worker.ts';

// The edge with plugins beside the real ones that keep no promise.
TestWorker.plugins = [...RUDE_PLUGINS, ...PLUGINS];

export default TestWorker;
