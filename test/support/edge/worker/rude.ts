import StageWorker from '../../../../edge/stage/worker.ts';
import { PLUGINS } from '../../../../plugins/index.ts';
import { RUDE_PLUGINS } from './rude-plugins.ts';

// The edge with additional plugins that break the contract.
StageWorker.plugins = [...RUDE_PLUGINS, ...PLUGINS];

export default StageWorker;
