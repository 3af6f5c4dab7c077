import { PLUGINS } from '../../../../plugins/index.ts';
import { RUDE_PLUGINS } from './rude-plugins.ts';
import TestWorker from './worker.ts';

// The edge with additional plugins that break the contract.
TestWorker.plugins = [...RUDE_PLUGINS, ...PLUGINS];

export default TestWorker;
