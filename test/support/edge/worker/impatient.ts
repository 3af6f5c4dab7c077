import StageWorker from '../../../../edge/stage/worker.ts';

// The edge with a short time limit for the tag server.
StageWorker.originTimeout = 200;

export default StageWorker;
